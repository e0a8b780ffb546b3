"""Models: what cuts a word into tokens of the vocabulary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from chainrule.errors import FormatError
from chainrule.text.merging import WordIds, longest_match, merge
from chainrule.text.sentencepiece_bpe import WORD
from chainrule.text.unigram import BYTES, SPACE, UnigramTokenizer
from chainrule.text.vocabulary import Vocabulary

_SPACES_SWAPPED = {ord(" "): SPACE, ord(SPACE): " "}


class Model(ABC):
    """A word -> the ids of its tokens."""

    def __init__(self, vocab: Mapping[str, int]) -> None:
        self.vocab = dict(vocab)
        self.plain = self.vocab  # without the tokens that no text becomes

    def hide(self, special: Collection[str]) -> None:
        """No text becomes one of these tokens."""
        self.plain = {token: id for token, id in self.vocab.items() if token not in special}

    @abstractmethod
    def ids(self, word: str) -> list[int]: ...

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The object of `tokenizer.json` that describes it."""


class BPE(Model):
    """Characters merge by rank. An unknown one becomes its bytes (`byte_fallback`), or `unk_token`, or nothing."""

    def __init__(
        self,
        vocab: Mapping[str, int],
        merges: Iterable[tuple[str, str]],
        *,
        unk_token: str | None = None,
        fuse_unk: bool = False,
        byte_fallback: bool = False,
        ignore_merges: bool = False,
        continuing_subword_prefix: str | None = None,
        end_of_word_suffix: str | None = None,
    ) -> None:
        super().__init__(vocab)
        self.merges = [tuple(pair) for pair in merges]
        self.unk_token, self.fuse_unk = unk_token, fuse_unk
        self.byte_fallback, self.ignore_merges = byte_fallback, ignore_merges
        self.prefix, self.suffix = continuing_subword_prefix or "", end_of_word_suffix or ""
        if unk_token is not None and unk_token not in self.vocab:
            raise FormatError(f"BPE: unk_token {unk_token!r} is not in the vocab (must be)")
        self.bytes = (
            [self.vocab[name] for name in BYTES] if byte_fallback and set(BYTES) <= vocab.keys() else []
        )
        self._table = {
            (self.vocab[left], self.vocab[right]): (rank, self._merged(rank, left, right))
            for rank, (left, right) in enumerate(self.merges)
        }
        self._units = WordIds(self._cut)

    def ids(self, word: str) -> list[int]:
        if self.ignore_merges and word in self.plain:
            return [self.plain[word]]
        if self._by_units:
            return [id for unit in WORD.findall(word) for id in self._units[unit]]
        return self._cut(word)

    def _cut(self, word: str) -> list[int]:
        ids: list[int] = []
        unknown = False  # the character before was unknown
        for place, character in enumerate(word):
            spelled = self.prefix * (place > 0) + character + self.suffix * (place == len(word) - 1)
            id = self.plain.get(spelled)
            if id is not None:
                ids.append(id)
            elif self.bytes:
                ids += [self.bytes[byte] for byte in spelled.encode("utf-8", "replace")]
            elif self.unk_token is not None and not (unknown and self.fuse_unk):
                ids.append(self.vocab[self.unk_token])
            unknown = id is None
        return merge(ids, self._table)

    @cached_property
    def _by_units(self) -> bool:
        """True if no merge crosses the beginning of a word, ▁, so that words of a long text can be cut one by one."""
        made = (left + right for left, right in self.merges)
        plain = not (self.prefix or self.suffix or self.ignore_merges) and SPACE in self.vocab
        return plain and not any(SPACE in token.lstrip(SPACE) for token in made)

    def _merged(self, rank: int, left: str, right: str) -> int:
        token = left + right.removeprefix(self.prefix)
        if token not in self.vocab:
            raise FormatError(f"merge {rank}: {token!r} is not in the vocab (must be)")
        return self.vocab[token]

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": "BPE",
            "dropout": None,
            "unk_token": self.unk_token,
            "continuing_subword_prefix": self.prefix or None,
            "end_of_word_suffix": self.suffix or None,
            "fuse_unk": self.fuse_unk,
            "byte_fallback": self.byte_fallback,
            "ignore_merges": self.ignore_merges,
            "vocab": self.vocab,
            "merges": [list(pair) for pair in self.merges],
        }


class WordPiece(Model):
    """The longest piece that fits, from left to right; a word that cannot be cut so is `unk_token`."""

    def __init__(
        self,
        vocab: Mapping[str, int],
        *,
        unk_token: str = "[UNK]",
        continuing_subword_prefix: str = "##",
        max_input_chars_per_word: int = 100,
    ) -> None:
        super().__init__(vocab)
        self.unk_token, self.prefix = unk_token, continuing_subword_prefix
        self.longest_word = max_input_chars_per_word
        if unk_token not in self.vocab:
            raise FormatError(f"WordPiece: unk_token {unk_token!r} is not in the vocab (must be)")
        self._longest = max(map(len, self.vocab))

    def ids(self, word: str) -> list[int]:
        too_long = len(word) > self.longest_word
        found = None if too_long else longest_match(word, self.plain, self._longest, self.prefix)
        return [self.vocab[self.unk_token]] if found is None else found

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": "WordPiece",
            "unk_token": self.unk_token,
            "continuing_subword_prefix": self.prefix,
            "max_input_chars_per_word": self.longest_word,
            "vocab": self.vocab,
        }


class Unigram(Model):
    """The cut with the greatest probability, in C++ by `UnigramTokenizer`."""

    def __init__(
        self, vocab: Sequence[tuple[str, float]], unk_id: int | None, *, byte_fallback: bool = False
    ) -> None:
        self.pieces = [(token, float(score)) for token, score in vocab]
        super().__init__({token: id for id, (token, _) in enumerate(self.pieces)})
        self.unk_id, self.byte_fallback = unk_id, byte_fallback
        if unk_id is None or not 0 <= unk_id < len(self.pieces):
            raise FormatError(f"Unigram: unk_id is {unk_id} (must be the id of the unknown token)")
        if any(" " in token for token in self.vocab):
            raise FormatError("Unigram: a piece with a space (must be written ▁)")
        self.unknown = self.pieces[unk_id][0]

    @cached_property
    def _cutter(self) -> UnigramTokenizer:
        tokens, scores = zip(*self.pieces, strict=True)
        unused = {self.unknown, *(self.vocab.keys() - self.plain.keys())}
        unused |= set() if self.byte_fallback else set(BYTES) & self.vocab.keys()
        vocabulary = Vocabulary(tokens, sorted(unused))
        return UnigramTokenizer(vocabulary, scores, prefix=False, unknown=self.unknown)

    def ids(self, word: str) -> list[int]:
        found: list[int] = self._cutter.encode_inside(word.translate(_SPACES_SWAPPED)).tolist()
        return found

    def to_dict(self) -> dict[str, Any]:
        vocab = [list(piece) for piece in self.pieces]
        return {"type": "Unigram", "unk_id": self.unk_id, "vocab": vocab, "byte_fallback": self.byte_fallback}
