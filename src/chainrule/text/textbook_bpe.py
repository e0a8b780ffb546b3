"""Textbook byte-pair encoding: characters, and merges of the most frequent pair.

Texts are split into words at white space. Pairs are counted inside words, weighted by the count of the word; a tie goes
to the alphabetically first pair. White space characters are tokens of their own, so that decoding restores the text.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text.training.merges import Pair, Pieces
from chainrule.text.training.textbook_bpe import (
    END,
    WORD_OR_SPACE,
    Learner,
    NativeLearner,
    count_words,
    merge_steps,
    spell,
    white_space,
)
from chainrule.text.unicode.utf8 import to_utf8
from chainrule.text.vocabulary import Vocabulary, VocabularyTokenizer, check_size, with_special
from chainrule.types import Ids

UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Step:
    """One merge: the pair, its count, and the words after the merge with their counts."""

    pair: Pair
    count: int
    words: list[list[str]]
    frequency: list[int]
    vocab_size: int


class TextbookBPETokenizer(VocabularyTokenizer):
    """Merges of characters in the order they were learned.

    >>> from chainrule.text import TextbookBPETokenizer
    >>> tokenizer = TextbookBPETokenizer.train("low lower lowest", n_merges=3)
    >>> tokenizer.merges
    (('l', 'o'), ('lo', 'w'), ('low', 'e'))
    >>> tokenizer.pieces("slower")
    ['s', 'lowe', 'r']

    With `end_mark` every word ends with `</w>`, so that a piece at the end of a word differs from one inside it. A
    character that training did not see becomes `<unk>` if that is a special token; otherwise it is an error.
    """

    kind = "plain-bpe"

    def __init__(
        self, vocabulary: Vocabulary, merges: Iterable[Pair] = (), *, end_mark: bool = False
    ) -> None:
        self.vocabulary = vocabulary
        self.merges = tuple(merges)
        self.end_mark = end_mark
        for a, b in self.merges:
            if not {a, b, a + b} <= vocabulary.plain.keys():
                raise DataError(
                    f"textbook BPE: merge {a!r} + {b!r} (both and their sum must be in the vocabulary)"
                )
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self._unknown = vocabulary.ids.get(UNKNOWN)
        self._cache: dict[str, list[str]] = {}

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int | None = None,
        *,
        n_merges: int | None = None,
        end_mark: bool = False,
        special_tokens: Iterable[str] = (),
    ) -> TextbookBPETokenizer:
        """Merge until there are `vocab_size` tokens, or `n_merges` merges, or every word is one token."""
        if n_merges is not None and n_merges < 0:
            raise ConfigError(f"textbook BPE: n_merges {n_merges} (must be at least 0)")
        learner = (NativeLearner if native.available() else Learner)(texts, end_mark=end_mark)
        start = with_special(special_tokens, learner.characters)
        limit = n_merges
        if vocab_size is not None:
            check_size("textbook BPE", vocab_size, len(start), "the characters of the text")
            limit = min(vocab_size - len(start), vocab_size if n_merges is None else n_merges)
        merges = list(learner.merges(limit, start.special))
        vocabulary = Vocabulary([*start.tokens, *map("".join, merges)], start.special)
        return cls(vocabulary, merges, end_mark=end_mark)

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text as strings."""
        out: list[str] = []
        for word in WORD_OR_SPACE.findall(text):
            if word not in self._cache:
                if len(self._cache) >= 1 << 16:
                    self._cache.clear()
                self._cache[word] = self._merge(spell(word, self.end_mark))
            out += self._cache[word]
        return out

    def encode(self, text: str) -> Ids:
        """text -> ids (n,): the merges are applied to each word in the order they were learned"""
        unknown = len(self.vocabulary)
        if native.available():
            ids: Ids = self._encoder.encode(to_utf8(text))
        else:
            get = self.vocabulary.plain.get
            ids = np.array([get(piece, unknown) for piece in self.pieces(text)], np.int32)
        missing = ids == unknown
        if missing.any():
            ids[missing] = self._unknown_id(text)
        return ids

    def _unknown_id(self, text: str) -> int:
        if self._unknown is not None:
            return self._unknown
        words = (match[0] for match in WORD_OR_SPACE.finditer(text))
        spelled = (piece for word in words for piece in spell(word, self.end_mark))
        unknown = next(piece for piece in spelled if piece not in self.vocabulary.plain)
        raise DataError(
            f"encode: unknown character {unknown!r} "
            f"(must occur in the training text, or train with the special token {UNKNOWN})"
        )

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text"""
        tokens = (self.vocabulary.tokens[id] for id in self.check_ids(ids))
        return "".join(token.removesuffix(END) if self.end_mark else token for token in tokens)

    def to_dict(self) -> dict[str, Any]:
        merges = [list(pair) for pair in self.merges]
        return {"type": self.kind, "end_mark": self.end_mark, "merges": merges, **self.vocabulary.to_dict()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> TextbookBPETokenizer:
        merges = description.get("merges")
        if not isinstance(merges, list) or not all(
            isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
            for pair in merges
        ):
            raise FormatError("textbook BPE: merges must be a list of pairs of strings")
        end_mark = description.get("end_mark") is True
        return cls(Vocabulary.from_dict(description), [(a, b) for a, b in merges], end_mark=end_mark)

    @cached_property
    def _encoder(self) -> Any:
        plain, unknown = self.vocabulary.plain, len(self.vocabulary)
        characters = [(ord(token), id) for token, id in plain.items() if len(token) == 1]
        merges = [(plain[a], plain[b], plain[a + b], rank) for rank, (a, b) in enumerate(self.merges)]
        return native.kernels().textbook_bpe_encoder(
            white_space(),
            np.array(characters, np.int32).reshape(-1, 2),
            np.array(merges, np.int32).reshape(-1, 4),
            plain.get(END, unknown) if self.end_mark else -1,
            unknown,
        )

    def _merge(self, word: list[str]) -> list[str]:
        """Apply the merges in the order they were learned: the reference for the native encoder."""
        pieces = Pieces({tuple(word): 1})
        heap: list[int] = []
        while True:
            for pair in pieces.changed & self._rank.keys():
                heapq.heappush(heap, self._rank[pair])
            pieces.changed.clear()
            if not heap:
                return pieces.words[0]
            pair = self.merges[heapq.heappop(heap)]
            pieces.merge(pair, "".join(pair))  # does nothing if an earlier merge used the pair up


def trace(
    texts: str | Iterable[str], n_merges: int | None = None, *, end_mark: bool = False
) -> Iterator[Step]:
    """Training step by step: each merge, and the words after it."""
    pieces = Pieces(count_words(texts, end_mark=end_mark))
    known = set(pieces.count)
    for done, (pair, count) in enumerate(merge_steps(pieces), 1):
        if n_merges is not None and done > n_merges:
            return
        known.add("".join(pair))
        yield Step(pair, count, pieces.words, list(pieces.frequency), len(known))


def trace_table(steps: Iterable[Step], words: int | None = None) -> str:
    """The merges as a printed table, with this many of the most frequent words; without a number, all.

    >>> print(trace_table(trace(["low", "lower", "lowest"], 2)))
    merge  pair    count  new token  vocabulary  words
        1  l + o       3  lo                  8  lo w | lo w e r | lo w e s t
        2  lo + w      3  low                 9  low | low e r | low e s t
    """
    rows = [("merge", "pair", "count", "new token", "vocabulary", "words")]
    for number, step in enumerate(steps, 1):
        by_frequency = sorted(zip(step.words, step.frequency, strict=True), key=lambda row: -row[1])
        shown = [
            " ".join(map(_visible, word)) + (f" ({count}x)" if count > 1 else "")
            for word, count in by_frequency[:words]
        ]
        if left := len(by_frequency) - len(shown):
            shown.append(f"{left:,} more")
        pair, new = " + ".join(map(_visible, step.pair)), _visible("".join(step.pair))
        rows.append((str(number), pair, str(step.count), new, str(step.vocab_size), " | ".join(shown)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numbers = (0, 2, 4)  # right-aligned columns
    cells = (
        [c.rjust(w) if i in numbers else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(row).rstrip() for row in cells)


def _visible(token: str) -> str:
    """A token in one line: white space as it is written in Python, a space as ␣."""
    return "".join(
        "␣" if character == " " else character if character.isprintable() else repr(character)[1:-1]
        for character in token
    )
