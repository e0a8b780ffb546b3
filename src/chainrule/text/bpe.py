"""Byte-level byte-pair encoding.                (Sennrich et al. 2016; Radford et al. 2019)

Text is UTF-8 bytes, split into words by a pattern (`pretokenize`); within a word, the pair that was merged first
in training merges first, until no learned pair is left. No text is unknown: every byte is a token.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text.merging import WordIds, merge
from chainrule.text.splitting.patterns import check_pattern, steps_of
from chainrule.text.splitting.pretokenize import character_classes, native_steps, split, split_text
from chainrule.text.tokenizer import Tokenizer
from chainrule.text.training import bpe as reference
from chainrule.text.training.counting import count_words
from chainrule.text.training.whole_words import WholeWordTrainer
from chainrule.text.unicode.byte_alphabet import BYTES_IN_ORDER, hide, show
from chainrule.text.unicode.utf8 import Joined, as_texts, batches, joined, to_valid_utf8
from chainrule.text.vocabulary import check_special
from chainrule.types import Ids
from chainrule.validate import Check


class BPETokenizer(Tokenizer):
    """Byte-level BPE: `tokens` with their ids, and the pairs of ids that merge, in the order of training.

    Without `merges` the ids give the order, as in tiktoken's files: two tokens merge if their joined bytes are a
    token, the lowest id first. With `whole_words` a word that is a token is taken at once, without merging.
    `encode` finds `special_tokens` in a text only when told to look for them. `pattern` is the name of one of the
    `patterns`, a regular expression, or several that are applied in turn.

    >>> from chainrule.text import BPETokenizer
    >>> tokenizer = BPETokenizer.train("low lower lowest low", 260, special_tokens=["<|end|>"])
    >>> [tokenizer.tokens[id] for id in tokenizer.encode("lowest")]
    [b'low', b'e', b's', b't']
    >>> tokenizer.decode(tokenizer.encode("naïve 🙂"))
    'naïve 🙂'
    """

    kind = "bpe"

    def __init__(
        self,
        tokens: Mapping[bytes, int],
        merges: Iterable[tuple[int, int]] | None,
        *,
        pattern: str | Sequence[str] = "gpt4",
        special_tokens: Mapping[str, int] | None = None,
        whole_words: bool = False,
    ) -> None:
        self.pattern = check_pattern(pattern)
        self.special_tokens = dict(special_tokens or {})
        self.whole_words = whole_words or merges is None
        self.ranked = merges is None
        self.tokens = _by_id(tokens, self.special_tokens)
        self.merges = self._rank_merges() if merges is None else self._numbered(merges, tokens)
        self.missing_bytes = frozenset(range(256)) - {token[0] for token in tokens if len(token) == 1}

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        vocab_size: int,
        *,
        pattern: str | Sequence[str] = "gpt4",
        special_tokens: Sequence[str] = (),
        min_count: int = 2,
        workers: int = 1,
    ) -> BPETokenizer:
        """Up to `vocab_size` tokens: 256 bytes, then merges, then the special tokens.

        Each merge takes the most frequent pair; a tie goes to the smaller pair of ids. Pairs that occur fewer than
        `min_count` times are not merged. No word spans two texts. The result does not depend on the number of threads,
        nor on that of `workers`, which count the words.
        """
        pattern = check_pattern(pattern)
        Check("bpe", SimpleNamespace(special_tokens=special_tokens)).distinct("special_tokens")
        limit = vocab_size - 256 - len(special_tokens)
        if limit < 0:
            needed = f"256 bytes and {len(special_tokens)} special tokens"
            rule = f"must be at least {256 + len(special_tokens)}: {needed}"
            raise ConfigError.of("BPE", {"vocab_size": vocab_size}, rule)
        before, splitter = native_steps(pattern)
        if splitter is not None and not before:
            trainer = _trainer(pattern)
            contents = map(to_valid_utf8, as_texts(texts))
            if not count_words(trainer, partial(_trainer, pattern), contents, workers):
                for batch, ends in batches(texts, to_valid_utf8):
                    trainer.add(batch, ends)
            merges = trainer.train(BYTES_IN_ORDER, limit, max(1, min_count))[:, :2]
        elif native.available():
            whole = WholeWordTrainer()
            for text in as_texts(texts):
                whole.add(split(to_valid_utf8(text), pattern))
            merges = whole.train(limit, max(1, min_count))[:, :2]
        else:
            words = Counter(word for text in as_texts(texts) for word in split(to_valid_utf8(text), pattern))
            merges = np.array(reference.train(words, limit, max(1, min_count))).reshape(-1, 4)[:, :2]
        tokens = [bytes([byte]) for byte in BYTES_IN_ORDER]
        for left, right in merges.tolist():
            tokens.append(tokens[left] + tokens[right])
        special = {name: len(tokens) + i for i, name in enumerate(special_tokens)}
        ids = {token: id for id, token in enumerate(tokens)}
        return cls(ids, merges.tolist(), pattern=pattern, special_tokens=special)

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """Of each token that is not special; made when it is asked for, since the extension needs none of it."""
        special = set(self.special_tokens.values())
        return {token: id for id, token in enumerate(self.tokens) if token and id not in special}

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    @property
    def special_ids(self) -> Mapping[str, int]:
        return self.special_tokens

    def encode(self, text: str, *, special: Collection[str] | Literal["all"] = ()) -> Ids:
        """text -> ids (n,) of int32. Special tokens are found only if `special` names them, the longest first.

        A lone surrogate becomes U+FFFD, as in tiktoken; two that make a pair become its character.
        """
        names = check_special(special, self.special_tokens)
        if not names:
            return self.encode_bytes(to_valid_utf8(text))
        expression = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        parts = re.split(f"({expression})", text)  # text and special tokens in turn
        rows = [self.encode_bytes(to_valid_utf8(part)) for part in parts[::2]]
        found = [np.array([self.special_tokens[name]], np.int32) for name in parts[1::2]]
        return np.concatenate([row for pair in zip(rows, found, strict=False) for row in pair] + rows[-1:])

    def encode_bytes(self, data: bytes) -> Ids:
        """Any bytes -> ids (n,) of int32; `decode_bytes` inverts it. UTF-8 gives the same ids as its text."""
        if self.missing_bytes and not self.missing_bytes.isdisjoint(data):
            position, byte = next((i, byte) for i, byte in enumerate(data) if byte in self.missing_bytes)
            raise DataError(f"encode: byte 0x{byte:02x} at {position} has no token (the vocabulary lacks it)")
        before, splitter = native_steps(self.pattern)
        if splitter is not None and not before:
            return self._encoder.encode(data)
        text = data.decode("utf-8", "surrogateescape")
        if splitter is not None:  # the extension makes the last steps
            parts = (part.encode("utf-8", "surrogateescape") for part in split_text(text, before))
            return np.concatenate([np.empty(0, np.int32), *(self._encoder.encode(part) for part in parts)])
        words = split_text(text, steps_of(self.pattern))
        return np.array([id for word in words for id in self._words[word]], np.int32)

    def encode_word(self, word: bytes) -> list[int]:
        """The reference: one word -> its ids."""
        if self.whole_words and word in self.ids:
            return [self.ids[word]]
        return merge([self.ids[word[i : i + 1]] for i in range(len(word))], self._merge_table)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text; invalid UTF-8 becomes U+FFFD. `decode_bytes` loses nothing."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: npt.ArrayLike) -> bytes:
        """ids (n,) -> bytes"""
        array = self.check_ids(ids)
        if native.available():
            return self._encoder.decode(np.ascontiguousarray(array, np.int32))
        return b"".join(self.tokens[id] for id in array)

    def piece(self, id: int) -> str:
        """One token, to be printed; bytes that are a part of a character as \\xc3."""
        return self.tokens[id].decode("utf-8", "backslashreplace")

    @property
    def spellings(self) -> list[bytes]:
        return self.tokens

    def extended(self, names: Sequence[str]) -> BPETokenizer:
        more = {name: self.vocab_size + i for i, name in enumerate(names)}
        return self.from_dict(self.to_dict() | {"special_tokens": self.special_tokens | more})

    def to_dict(self) -> dict[str, Any]:
        """A description for JSON, which `from_dict` reads; bytes are written as in GPT-2's files."""
        return {
            "type": self.kind,
            "pattern": self.pattern if isinstance(self.pattern, str) else list(self.pattern),
            "tokens": {show(token): id for token, id in self.ids.items()},
            "merges": None if self.ranked else self.merges[:, :2].tolist(),
            "special_tokens": self.special_tokens,
            "whole_words": self.whole_words,
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> BPETokenizer:
        kind = description.get("type")
        if kind != cls.kind:
            raise FormatError(f"tokenizer: type {kind!r} (must be {cls.kind!r})")
        try:
            tokens = {hide(name): id for name, id in description["tokens"].items()}
            merges = description["merges"]
            return cls(
                tokens,
                merges if merges is None else [(left, right) for left, right in merges],
                pattern=description["pattern"],
                special_tokens=description["special_tokens"],
                whole_words=bool(description["whole_words"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, ConfigError | FormatError):
                raise
            raise FormatError(f"tokenizer: not a description of a BPE tokenizer ({error!r})") from None

    def _numbered(self, merges: Iterable[tuple[int, int]], ids: Mapping[bytes, int]) -> npt.NDArray[np.int32]:
        """(m, 4): left, right, merged, priority"""
        merges = list(merges)
        if (found := self._merged(merges, ids)) is not None:
            return found
        rows = []
        for priority, (left, right) in enumerate(merges):
            both = [
                self.tokens[id] if type(id) is int and 0 <= id < len(self.tokens) else b""
                for id in (left, right)
            ]
            merged = ids.get(b"".join(both))
            if merged is None or not all(both):
                what = " + ".join(map(repr, both))
                raise FormatError(
                    f"merge {priority}: {what} ({left}, {right}) gives no token (must be in the vocabulary)"
                )
            rows.append((left, right, merged, priority))
        return np.array(rows, np.int32).reshape(-1, 4)

    def _merged(
        self, merges: list[tuple[int, int]], ids: Mapping[bytes, int]
    ) -> npt.NDArray[np.int32] | None:
        """The same at once; None if one of them may be wrong."""
        tokens = self.tokens
        with suppress(KeyError, IndexError, TypeError, ValueError):
            merged = [ids[tokens[left] + tokens[right]] for left, right in merges]
            integers = set(map(type, chain.from_iterable(merges))) <= {int}
            if integers and all(id >= 0 and tokens[id] for id in set(chain.from_iterable(merges))):
                rows = np.empty((len(merged), 4), np.int32)
                rows[:, :2] = np.array(merges).reshape(-1, 2)
                rows[:, 2], rows[:, 3] = merged, np.arange(len(merged))
                return rows
        return None

    def _rank_merges(self) -> npt.NDArray[np.int32]:
        if native.available():
            return native.kernels().bpe_rank_merges(*self._joined(special=False))
        return np.array(reference.rank_merges(self.ids), np.int32).reshape(-1, 4)

    def _joined(self, special: bool) -> Joined:
        """The bytes of all tokens."""
        without = set() if special else set(self.special_tokens.values())
        return joined([b"" if id in without else token for id, token in enumerate(self.tokens)])

    @cached_property
    def _encoder(self) -> Any:
        special = np.array(list(self.special_tokens.values()), np.int32)
        tokens, ends = self._joined(special=True)
        _, splitter = native_steps(self.pattern)
        return native.kernels().BpeEncoder(
            *(splitter or (character_classes(), 0)), tokens, ends, self.merges, special, self.whole_words
        )

    @cached_property
    def _words(self) -> WordIds:
        return WordIds(lambda word: self.encode_word(word.encode("utf-8", "surrogateescape")))

    @cached_property
    def _merge_table(self) -> dict[tuple[int, int], tuple[int, int]]:
        return {(left, right): (priority, merged) for left, right, merged, priority in self.merges.tolist()}


def _trainer(pattern: str | tuple[str, ...]) -> Any:
    """Counts words and learns merges; for patterns that the C++ code splits by."""
    _, splitter = native_steps(pattern)
    assert splitter is not None
    return native.kernels().BpeTrainer(*splitter)


def _by_id(ids: Mapping[bytes, int], special: Mapping[str, int]) -> list[bytes]:
    """The bytes of each id; no bytes for an id without a token."""
    for name in special:
        if not isinstance(name, str) or to_valid_utf8(name).decode() != name:
            raise FormatError(f"special token {name!r} (must be text without lone surrogates)")
    named = [*ids.items(), *((name.encode("utf-8"), id) for name, id in special.items())]
    if not named:
        raise FormatError("tokenizer: got no tokens (must have at least one)")
    most = 2 * len(named) + 1024  # a few gaps are usual, but one large id must not allocate gigabytes
    tokens: dict[int, bytes] = {}
    for token, id in named:
        if type(id) is not int or not 0 <= id < most:
            raise FormatError(
                f"token {token!r}: id {id!r} (must be from 0 to {most - 1} with {len(named)} tokens)"
            )
        if not token or tokens.setdefault(id, token) is not token:
            raise FormatError(f"token {token!r}: id {id} (must have bytes, and an id of its own)")
    return [tokens.get(id, b"") for id in range(max(tokens) + 1)]
