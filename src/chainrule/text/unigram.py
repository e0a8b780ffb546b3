"""The Unigram tokenizer of SentencePiece (Kudo 2018): the cut of a text into pieces with the greatest probability.

It works on raw text: spaces are part of the pieces (written ▁ in files), nothing is normalized, and decoding restores
every character.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.errors import DataError, FormatError
from chainrule.text.training.counting import count_words
from chainrule.text.training.unigram import UNIT, Scores, Settings, train
from chainrule.text.unicode.utf8 import as_texts, from_utf8, to_utf8
from chainrule.text.vocabulary import Vocabulary, VocabularyTokenizer, check_size, with_special
from chainrule.types import Ids

UNKNOWN = "<unk>"
SPACE = "▁"
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
PENALTY = 10.0  # log probability of an unknown character below that of the worst piece


class UnigramTokenizer(VocabularyTokenizer):
    """Cuts text into the pieces whose product of probabilities is greatest.

    >>> from chainrule.text import UnigramTokenizer
    >>> tokenizer = UnigramTokenizer.train("low lower lowest newer newest wider " * 9, vocab_size=280)
    >>> tokenizer.pieces("newest low")
    ['▁newest', '▁low']
    >>> tokenizer.decode(tokenizer.encode("☃ in the snow"))
    '☃ in the snow'

    An unknown character becomes the tokens of its bytes, if the vocabulary has them; otherwise a run of unknown
    characters becomes one `<unk>`. A ▁ in the text counts as unknown. With `prefix` a space is put before the text, so
    that its first word is cut like the others; decoding removes it.
    """

    kind = "unigram"

    def __init__(
        self, vocabulary: Vocabulary, scores: Iterable[float], *, prefix: bool = True, unknown: str = UNKNOWN
    ) -> None:
        self.vocabulary = vocabulary
        self.scores = tuple(scores)
        self.prefix = prefix
        if len(self.scores) != len(vocabulary):
            raise DataError(
                f"unigram: {len(self.scores)} scores for {len(vocabulary)} tokens (must be one each)"
            )
        if not all(map(math.isfinite, self.scores)):
            raise DataError("unigram: a score is not finite (must be the log of a probability)")
        self._unknown = vocabulary.id(unknown)
        self.bytes = tuple(vocabulary.ids[name] for name in BYTES if name in vocabulary.plain)
        if len(self.bytes) not in (0, 256):
            raise DataError(f"unigram: {len(self.bytes)} byte tokens (must be all 256, or none)")
        texts = {
            token.replace(SPACE, " "): id for token, id in vocabulary.plain.items() if token not in BYTES
        }
        if len(texts) + len(self.bytes) < len(vocabulary.plain) or "" in texts:
            raise DataError("unigram: a token is empty, or two differ only in ▁ and a space")
        self._ids = dict(sorted(texts.items()))

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int,
        *,
        byte_fallback: bool = True,
        prefix: bool = True,
        coverage: float = Settings.coverage,
        special_tokens: Iterable[str] = (),
        workers: int = 1,
    ) -> UnigramTokenizer:
        """Learn pieces by expectation maximization; a short text may give fewer than asked for.

        Several `workers` count the words of the texts, with the same result.
        """
        special = tuple(dict.fromkeys([UNKNOWN, *special_tokens]))
        bytes = BYTES if byte_fallback else ()
        fixed = len(special) + len(bytes)
        check_size("unigram", vocab_size, fixed + 1, "special tokens and bytes")
        learned = _learn(_raw(texts, prefix), Settings(vocab_size - fixed, coverage), workers)
        if not learned:
            raise DataError("unigram: no text to learn from")
        check_size(
            "unigram", vocab_size, fixed + len(learned), "special tokens, bytes and the letters of the text"
        )
        named = {piece.replace(" ", SPACE): score for piece, score in learned.items()}
        pieces = [piece for piece in named if piece not in bytes]
        vocabulary = with_special(special, [*bytes, *pieces])
        return cls(vocabulary, [named.get(token, 0.0) for token in vocabulary.tokens], prefix=prefix)

    def encode(self, text: str) -> Ids:
        """text -> ids (n,)"""
        return self.encode_inside(" " + text if self.prefix and text else text)

    def encode_inside(self, text: str) -> Ids:
        if native.available():
            return self._encoder.encode(to_utf8(text))
        ids = np.array([id for unit in self._units(text) for id in self._cut(unit)], np.int32)
        # A run of unknown characters is one <unk>.
        repeated = (ids[1:] == self._unknown) & (ids[:-1] == self._unknown)
        return np.delete(ids, np.flatnonzero(repeated) + 1)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text; invalid UTF-8 becomes U+FFFD"""
        content = self.decode_bytes(ids)
        try:
            text = from_utf8(content)
        except UnicodeDecodeError:
            text = content.decode("utf-8", "replace")
        return text.removeprefix(" ") if self.prefix else text

    def decode_bytes(self, ids: npt.ArrayLike) -> bytes:
        """ids (n,) -> UTF-8, including the space before the text"""
        return b"".join(self._contents[id] for id in self.check_ids(ids))

    @property
    def spellings(self) -> list[bytes]:
        return self._contents

    def extended(self, names: Sequence[str]) -> UnigramTokenizer:
        known = self.vocabulary
        more = Vocabulary([*known.tokens, *names], [*known.special, *names])
        scores = [*self.scores, *(0.0 for _ in names)]  # no text is cut into them
        return UnigramTokenizer(more, scores, prefix=self.prefix, unknown=known.tokens[self._unknown])

    def to_dict(self) -> dict[str, Any]:
        description = {"type": self.kind, "prefix": self.prefix, "scores": list(self.scores)}
        return description | self.vocabulary.to_dict()

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> UnigramTokenizer:
        scores = description.get("scores")
        if not isinstance(scores, list) or not all(type(score) in (int, float) for score in scores):
            raise FormatError("unigram: scores must be a list of numbers")
        return cls(Vocabulary.from_dict(description), scores, prefix=description.get("prefix") is True)

    @cached_property
    def _contents(self) -> list[bytes]:
        """The UTF-8 of each token."""
        contents = [to_utf8(token) for token in self.vocabulary.tokens]
        for text, id in self._ids.items():
            contents[id] = to_utf8(text)
        for byte, id in enumerate(self.bytes):
            contents[id] = bytes([byte])
        return contents

    @cached_property
    def _by_units(self) -> bool:
        """True if no piece crosses units, so that each unit can be cut alone."""
        return all(UNIT.fullmatch(text) for text in self._ids)

    @cached_property
    def _encoder(self) -> Any:
        ids = list(self._ids.values())
        scores = [self.scores[id] for id in ids]
        texts = [to_utf8(text) for text in self._ids]
        return native.kernels().UnigramEncoder(
            texts, ids, scores, self._unknown, list(self.bytes), self._by_units
        )

    def _units(self, text: str) -> list[str]:
        return UNIT.findall(text) if self._by_units else [text]

    def _cut(self, text: str) -> list[int]:
        """Viterbi, the reference for the native encoder; a tie goes to the cut with the longest last piece."""
        longest = max(map(len, self._ids), default=1)
        unknown_score = min((self.scores[id] for id in self._ids.values()), default=0.0) - PENALTY
        # Score, start and id of the last piece, by end.
        best = [(0.0, 0, 0)] + [(-math.inf, 0, 0)] * len(text)
        for start in range(len(text)):
            for end in range(start + 1, min(len(text), start + longest) + 1):
                id = self._ids.get(text[start:end], -1)
                if id < 0 and end > start + 1:
                    continue
                score = best[start][0] + (self.scores[id] if id >= 0 else unknown_score)
                if score > best[end][0]:
                    best[end] = score, start, id
        ids: list[int] = []
        end = len(text)
        while end > 0:
            _, start, id = best[end]
            ids += [id] if id >= 0 else self._unknown_ids(text[start:end])[::-1]
            end = start
        return ids[::-1]

    def _unknown_ids(self, character: str) -> list[int]:
        return [self.bytes[byte] for byte in to_utf8(character)] if self.bytes else [self._unknown]


def _raw(texts: str | Iterable[str], prefix: bool) -> Iterator[str]:
    """Texts to learn from, cut at ▁: files write a space so, hence a ▁ of the text is never part of a piece."""
    for text in as_texts(texts):
        yield from (" " + text if prefix and text else text).split(SPACE)


def _learn(texts: Iterator[str], settings: Settings, workers: int) -> Scores:
    if not native.available():
        return train(texts, settings)
    trainer = native.kernels().UnigramTrainer()
    contents = map(to_utf8, texts)
    if not count_words(trainer, _Units, contents, workers):
        for text in contents:
            trainer.add(text)
    s = settings
    found, scores = trainer.train(s.pieces, s.coverage, s.seeds, s.most_letters, s.shrink, s.iterations)
    return {from_utf8(piece): score for piece, score in zip(found, scores, strict=True)}


class _Units:
    """Counts the units of texts that were joined."""

    def __init__(self) -> None:
        self.trainer = native.kernels().UnigramTrainer()

    def add(self, texts: bytes, ends: npt.NDArray[np.int64]) -> None:
        start = 0
        for end in ends.tolist():
            self.trainer.add(texts[start:end])
            start = end

    def counts(self) -> Any:
        return self.trainer.counts()
