"""WordPiece, the tokenizer of BERT.        R-269 (seed 004 §7.4.2; E-004-18)

A word is cut from left to right, each time at the longest piece the vocabulary holds; pieces inside a word begin with
`##`. A word that cannot be cut so, or has more than a hundred characters, is `[UNK]` as a whole.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.text.bert import BertRules
from chainrule.text.merges import Pair, Pieces, as_texts
from chainrule.text.tokenizer import Ids, Tokenizer
from chainrule.text.vocabulary import Vocabulary, check_room, with_special

UNKNOWN = "[UNK]"
SPECIAL = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")
PREFIX = "##"
MOST_CHARACTERS = 100  # of a word
GLUED = (".", "?", "!", ",")  # marks that follow a word without a space when text is restored


class WordPieceTokenizer(Tokenizer):
    """Words by BERT's rules, pieces by the longest match.

    >>> from chainrule.text import Vocabulary, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer(Vocabulary(["[UNK]", "un", "##aff", "##able", "!"], ["[UNK]"]))
    >>> tokenizer.pieces("Unaffable!")
    ['un', '##aff', '##able', '!']
    >>> tokenizer.decode(tokenizer.encode("Unaffable!"))
    'unaffable!'
    """

    kind = "wordpiece"

    def __init__(self, vocabulary: Vocabulary, *, rules: BertRules | None = None) -> None:
        self.vocabulary = vocabulary
        self.rules = rules or BertRules()
        self._unknown = vocabulary.id(UNKNOWN)
        self._longest = max(map(len, vocabulary.tokens))
        self._cache = _Words(self)

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int,
        *,
        min_count: int | None = None,
        special_tokens: Iterable[str] = SPECIAL,
        rules: BertRules | None = None,
    ) -> WordPieceTokenizer:
        """Start from characters, merge the pair with the best score until there are `vocab_size` tokens.

        Pairs that occur less than `min_count` times are not merged: of two rare letters that met once the score is
        1, the highest there is. Without `min_count` the bound starts high and is halved, down to 2, whenever no pair is
        left above it: frequent pairs come before rare ones, and among them the score decides.
        """
        rules = rules or BertRules()
        words: Counter[str] = Counter()
        for text in as_texts(texts):
            words.update(rules.split(text))
        pieces = Pieces({tuple(spell(word)): count for word, count in sorted(words.items())})
        start = with_special(dict.fromkeys([*special_tokens, UNKNOWN]), sorted(pieces.count))
        check_room("WordPiece", vocab_size, len(start), "special tokens and characters")
        tokens = dict.fromkeys(start.tokens)  # two merges may give the same token
        for merged in _merge_steps(pieces, min_count):
            if len(tokens) == vocab_size:
                break
            tokens[merged] = None
        return cls(Vocabulary(tokens, start.special), rules=rules)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    @property
    def special_ids(self) -> Mapping[str, int]:
        return self.vocabulary.special_ids

    def pieces(self, text: str) -> list[str]:
        """The text as pieces, before they become numbers."""
        return [self.vocabulary.tokens[id] for id in self.encode(text)]

    def encode(self, text: str) -> Ids:
        """text -> ids (n,); special tokens such as [CLS] are for the caller to add"""
        cache = self._cache
        return np.array([id for word in self.rules.split(text) for id in cache[word]], np.int32)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text with single spaces between words; case and accents do not come back"""
        parts: list[str] = []
        for id in self.check_ids(ids):
            token = self.vocabulary.tokens[id]
            if token.startswith(PREFIX) and parts:
                parts.append(token.removeprefix(PREFIX))
            else:
                parts.append(token if not parts or token.startswith(GLUED) else f" {token}")
        return "".join(parts)

    def piece(self, id: int) -> str:
        return self.vocabulary.tokens[id]

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.kind, "rules": asdict(self.rules), **self.vocabulary.to_dict()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> WordPieceTokenizer:
        rules = description.get("rules")
        known = {field.name for field in fields(BertRules)}
        if (
            not isinstance(rules, dict)
            or rules.keys() != known
            or not all(v in (0, 1) for v in rules.values())
        ):
            raise FormatError(
                f"wordpiece: rules are {rules!r} (must be true or false for {', '.join(sorted(known))})"
            )
        return cls(Vocabulary.from_dict(description), rules=BertRules(**rules))

    def longest_match(self, word: str) -> list[int]:
        """The ids of a word's pieces, or [UNK]."""
        if len(word) > MOST_CHARACTERS:
            return [self._unknown]
        ids, start = [], 0
        while start < len(word):
            prefix = PREFIX if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                id = self.vocabulary.plain.get(prefix + word[start:end])
                if id is not None:
                    break
            else:
                return [self._unknown]
            ids.append(id)
            start = end
        return ids


class _Words(dict[str, list[int]]):
    """The ids of words that were met; it starts again when it has grown large."""

    LIMIT = 1 << 17

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        self.tokenizer = tokenizer

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= self.LIMIT:
            self.clear()
        self[word] = self.tokenizer.longest_match(word)
        return self[word]


def spell(word: str) -> list[str]:
    """
    >>> spell("low")
    ['l', '##o', '##w']
    """
    return [word[0], *(PREFIX + character for character in word[1:])]


def score(pieces: Pieces, pair: Pair) -> float:
    """count(ab) / (count(a) count(b)): how much more often a and b stand together than chance would have it"""
    a, b = pair
    return pieces.pairs[pair] / (pieces.count[a] * pieces.count[b])


def _merge_steps(pieces: Pieces, min_count: int | None) -> Iterator[str]:
    """The token that each merge adds; of equal scores the more frequent pair, then the alphabetically first.

    A merge changes the counts of its two pieces, and so the scores of all pairs they are in: those are pushed
    again, and what no longer agrees with the counts is skipped when it is popped.
    """
    holding: defaultdict[str, set[Pair]] = defaultdict(set)  # piece -> pairs with it
    for least in [min_count] if min_count is not None else _falling(max(pieces.pairs.values(), default=1)):
        heap: list[tuple[float, int, Pair]] = []
        outdated = set(pieces.pairs)
        while True:
            for pair in pieces.changed:
                for piece in pair:
                    (holding[piece].add if pair in pieces.pairs else holding[piece].discard)(pair)
            outdated |= pieces.changed
            pieces.changed.clear()
            for pair in outdated:
                if pieces.pairs.get(pair, 0) >= least:
                    heapq.heappush(heap, _entry(pieces, pair))
            while heap and (heap[0][2] not in pieces.pairs or heap[0] != _entry(pieces, heap[0][2])):
                heapq.heappop(heap)
            if not heap:
                break
            a, b = heapq.heappop(heap)[2]
            merged = a + b.removeprefix(PREFIX)
            pieces.merge((a, b), merged)
            outdated = holding[a] | holding[b] | holding[merged]
            yield merged


def _falling(most: int) -> Iterator[int]:
    """
    >>> list(_falling(11))
    [8, 4, 2]
    """
    for power in range(most.bit_length() - 1, 0, -1):
        yield 1 << power


def _entry(pieces: Pieces, pair: Pair) -> tuple[float, int, Pair]:
    return -score(pieces, pair), -pieces.pairs[pair], pair
