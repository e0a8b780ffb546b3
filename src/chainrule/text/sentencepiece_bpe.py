"""SentencePiece's byte-pair encoding, the tokenizer of Llama 1 and 2: characters merge into pieces, by rank.

A space is written ▁ and is part of a piece; a space is put before the text; an unknown character becomes the tokens of
its bytes. Other programs train such a tokenizer; this one loads and uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError, FormatError
from chainrule.text.merging import Merges, WordIds, merge
from chainrule.text.unigram import BYTES, SPACE, UNKNOWN
from chainrule.text.vocabulary import Vocabulary, VocabularyTokenizer
from chainrule.types import Ids

LONGEST = 512
WORD = re.compile(f"{SPACE}*[^{SPACE}]+|{SPACE}+")


class SentencePieceBPETokenizer(VocabularyTokenizer):
    """Pieces, and merges as rows (left, right, rank); the lowest rank merges first.

    >>> from chainrule.text import SentencePieceBPETokenizer, Vocabulary
    >>> vocabulary = Vocabulary(["<unk>", "<s>", "▁", "l", "o", "w", "lo", "▁lo"], special=["<unk>", "<s>"])
    >>> tokenizer = SentencePieceBPETokenizer(vocabulary, [(3, 4, 0), (2, 6, 1)], start="<s>")
    >>> tokenizer.encode("low lo").tolist()
    [1, 7, 5, 7]
    >>> tokenizer.decode([1, 7, 5, 7])
    'low lo'

    `encode` puts the special token `start` before every text, and with `prefix` a space; decoding drops both.
    """

    kind = "piece_bpe"

    def __init__(
        self,
        vocabulary: Vocabulary,
        merges: Iterable[tuple[int, int, int]],
        *,
        prefix: bool = True,
        start: str | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.prefix = prefix
        self.start = start
        if start is not None and start not in vocabulary.special_ids:
            raise DataError(f"SentencePiece BPE: start is {start!r} (must be a special token)")
        self.start_ids = [] if start is None else [vocabulary.ids[start]]
        self.bytes = tuple(vocabulary.ids[name] for name in BYTES if name in vocabulary.plain)
        if len(self.bytes) not in (0, 256):
            raise DataError(f"SentencePiece BPE: {len(self.bytes)} byte tokens (must be all 256, or none)")
        self.merges = sorted((rank, left, right) for left, right, rank in merges)
        self._table = self._merge_table()
        self._contents = [self._content(token) for token in vocabulary.tokens]
        self._words = WordIds(self._cut_word)  # texts repeat their words

    @classmethod
    def from_scores(
        cls, vocabulary: Vocabulary, scores: Sequence[float], *, prefix: bool = True, start: str | None = None
    ) -> SentencePieceBPETokenizer:
        """Two pieces merge if they join to a piece; the highest score merges first, as in SentencePiece."""
        merges = merges_by_score(vocabulary, scores)
        return cls(vocabulary, merges, prefix=prefix, start=start)

    def scores(self) -> list[float]:
        """Scores from which `from_scores` makes these merges; tokens that no merge makes come last."""
        tokens = self.vocabulary.tokens
        found: dict[str, float] = {}
        for rank, left, right in self.merges:
            found.setdefault(tokens[left] + tokens[right], -float(rank))
        last = min(found.values(), default=0.0) - 1
        fixed = {*self.vocabulary.special, *BYTES}
        return [0.0 if token in fixed else found.get(token, last) for token in tokens]

    def encode(self, text: str) -> Ids:
        """text -> ids (n,)"""
        inside = self.encode_inside(" " + text if self.prefix and text else text)
        return np.concatenate([np.array(self.start_ids, np.int32), inside])

    def encode_inside(self, text: str) -> Ids:
        words = WORD.findall(text.replace(" ", SPACE))
        return np.array([id for word in words for id in self._words[word]], np.int32)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text; invalid UTF-8 becomes U+FFFD, special tokens nothing"""
        text = self.decode_bytes(ids).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.prefix else text

    def decode_bytes(self, ids: npt.ArrayLike) -> bytes:
        """ids (n,) -> UTF-8, including the space before the text"""
        return b"".join(self._contents[id] for id in self.check_ids(ids))

    @property
    def spellings(self) -> list[bytes]:
        return self._contents

    def to_dict(self) -> dict[str, Any]:
        merges = [[left, right, rank] for rank, left, right in self.merges]
        description = {"type": self.kind, "prefix": self.prefix, "start": self.start, "merges": merges}
        return description | self.vocabulary.to_dict()

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> SentencePieceBPETokenizer:
        merges, start = description.get("merges"), description.get("start")
        if not isinstance(merges, list) or not all(
            isinstance(row, list) and len(row) == 3 and all(type(n) is int for n in row) for row in merges
        ):
            raise FormatError("SentencePiece BPE: merges must be a list of [left, right, rank]")
        if start is not None and not isinstance(start, str):
            raise FormatError(f"SentencePiece BPE: start is {start!r} (must be a token, or null)")
        rows = [(left, right, rank) for left, right, rank in merges]
        prefix = description.get("prefix") is True
        return cls(Vocabulary.from_dict(description), rows, prefix=prefix, start=start)

    def _merge_table(self) -> Merges:
        """Pair of ids -> (rank of its merge, id of the merged piece)."""
        table: dict[tuple[int, int], tuple[int, int]] = {}
        tokens, ids = self.vocabulary.tokens, self.vocabulary.plain
        for rank, left, right in self.merges:
            known = 0 <= left < len(tokens) and 0 <= right < len(tokens)
            piece = tokens[left] + tokens[right] if known else ""
            if piece not in ids:
                raise FormatError(f"merge of {left} and {right} gives no piece (must be in the vocabulary)")
            if SPACE in piece.lstrip(SPACE):
                raise FormatError(f"piece {piece!r} has a space inside (▁ must stand at its beginning)")
            table.setdefault((left, right), (rank, ids[piece]))
        return table

    def _cut_word(self, word: str) -> list[int]:
        ids: list[int] = []
        for character in word:
            id = self.vocabulary.plain.get(character)
            ids += self._unknown(character) if id is None else [id]
        return merge(ids, self._table)

    def _unknown(self, character: str) -> list[int]:
        if self.bytes:
            return [self.bytes[byte] for byte in character.encode("utf-8", "replace")]
        if UNKNOWN not in self.vocabulary.ids:
            raise DataError(f"encode: unknown character {character!r} (the vocabulary has no {UNKNOWN})")
        return [self.vocabulary.ids[UNKNOWN]]

    def _content(self, token: str) -> bytes:
        """The UTF-8 of a token."""
        if token in self.vocabulary.special_ids:
            return b""
        if self.bytes and token in _BYTE_VALUES:
            return _BYTE_VALUES[token]
        return token.replace(SPACE, " ").encode("utf-8", "surrogatepass")


_BYTE_VALUES = {name: bytes([byte]) for byte, name in enumerate(BYTES)}


def merges_by_score(vocabulary: Vocabulary, scores: Sequence[float]) -> list[tuple[int, int, int]]:
    """(left, right, rank) of each way to make a piece of two others; the highest score merges first."""
    plain = {token: id for token, id in vocabulary.plain.items() if token not in BYTES}
    if (longest := max(map(len, plain), default=0)) > LONGEST:  # each is cut at every place
        raise FormatError(f"SentencePiece BPE: a piece of {longest} characters (must be at most {LONGEST})")
    cuts = {
        token: [n for n in range(1, len(token)) if token[:n] in plain and token[n:] in plain]
        for token in sorted(plain, key=lambda token: (-scores[plain[token]], plain[token]))
    }
    return [
        (plain[token[:cut]], plain[token[cut:]], rank)
        for rank, token in enumerate(token for token in cuts if cuts[token])
        for cut in cuts[token]
    ]
