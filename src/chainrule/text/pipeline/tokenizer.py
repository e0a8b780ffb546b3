"""A tokenizer that runs a pipeline of parts: any combination that `tokenizer.json` or a SentencePiece model asks for.

text -> added tokens are found -> normalizer -> pre-tokenizer -> model -> ids -> decoder -> text
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError, kind_of
from chainrule.text.merging import WordIds
from chainrule.text.pipeline import decoders, normalizers, pretokenizers
from chainrule.text.pipeline.added import AddedToken, Finder
from chainrule.text.pipeline.decoders import Decoder
from chainrule.text.pipeline.model_files import read_model
from chainrule.text.pipeline.models import Model, WordPiece
from chainrule.text.pipeline.normalizers import Normalizer
from chainrule.text.pipeline.pretokenizers import PreTokenizer
from chainrule.text.tokenizer import Tokenizer
from chainrule.text.unicode.utf8 import to_valid_utf8
from chainrule.text.vocabulary import check_special
from chainrule.types import Ids

PARTS = ("normalizer", "pre_tokenizer", "model", "decoder")


class PipelineTokenizer(Tokenizer):
    """Text to ids by the parts of a pipeline; a part that is None does nothing.

    Added tokens are found in the text: those that are `special` only when `encode` is told to look for them. `symbols`
    are tokens that are found in the normalized text as they are (SentencePiece's user-defined symbols). `around` are
    the special tokens that the model expects before and after a text; the batches put them there.

    >>> from chainrule.text.pipeline import PipelineTokenizer
    >>> from chainrule.text.pipeline.models import WordPiece
    >>> from chainrule.text.pipeline.normalizers import Lowercase
    >>> from chainrule.text.pipeline.pretokenizers import WhitespaceSplit
    >>> model = WordPiece({"[UNK]": 0, "low": 1, "##est": 2})
    >>> tokenizer = PipelineTokenizer(model, normalizer=Lowercase(), pre_tokenizer=WhitespaceSplit())
    >>> tokenizer.encode("Lowest  LOW high").tolist()
    [1, 2, 1, 0]
    """

    kind = "pipeline"

    def __init__(
        self,
        model: Model,
        *,
        normalizer: Normalizer | None = None,
        pre_tokenizer: PreTokenizer | None = None,
        decoder: Decoder | None = None,
        added: Iterable[AddedToken] = (),
        symbols: Mapping[str, int] | None = None,
        around: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> None:
        self.model, self.normalizer, self.pre_tokenizer, self.decoder = (
            model,
            normalizer,
            pre_tokenizer,
            decoder,
        )
        self.added = tuple(sorted(added, key=lambda token: token.id))
        self.symbols = dict(symbols or {})
        self.around = around
        self.special_tokens = {token.content: token.id for token in self.added if token.special}
        self.tokens = _by_id(model.vocab, {token.content: token.id for token in self.added} | self.symbols)
        model.hide(self.special_tokens)
        for name in (*around[0], *around[1]):
            if name not in self.tokens:
                raise FormatError(f"post_processor: {name!r} is not in the vocabulary (must be)")
        self._words = WordIds(self._word_ids)
        self._finders: dict[frozenset[str], tuple[Finder, Finder]] = {}

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    @property
    def special_ids(self) -> Mapping[str, int]:
        return self.special_tokens

    def piece(self, id: int) -> str:
        return self.tokens[id]

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text as strings."""
        return [self.tokens[id] for id in self.encode(text)]

    def encode(self, text: str, *, special: Collection[str] | Literal["all"] = ()) -> Ids:
        """text -> ids (n,) of int32. Special tokens are found only if `special` names them, the longest first."""
        names = check_special(special, self.special_tokens)
        return np.array(self._ids(text, frozenset(names), first=True), np.int32)

    def encode_inside(self, text: str, *, special: Collection[str] | Literal["all"] = ()) -> Ids:
        names = check_special(special, self.special_tokens)
        return np.array(self._ids(text, frozenset(names), first=False), np.int32)

    def decode(self, ids: npt.ArrayLike) -> str:
        """ids (n,) -> text"""
        tokens = [self.tokens[id] for id in self.check_ids(ids)]
        return " ".join(tokens) if self.decoder is None else "".join(self.decoder(tokens))

    @property
    def spellings(self) -> list[str] | None:
        return None if self.decoder is None or isinstance(self.model, WordPiece) else self.tokens

    def extended(self, names: Sequence[str]) -> PipelineTokenizer:
        more = [AddedToken(self.vocab_size + i, name, special=True) for i, name in enumerate(names)]
        known = self.to_dict()
        added = [*known["added_tokens"], *(token.to_dict() for token in more)]
        return self.from_dict(known | {"added_tokens": added})

    def to_dict(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in PARTS}
        return {
            "type": self.kind,
            **{name: None if part is None else part.to_dict() for name, part in parts.items()},
            "added_tokens": [token.to_dict() for token in self.added],
            "symbols": self.symbols,
            "around": [list(names) for names in self.around],
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> PipelineTokenizer:
        added, symbols, around = (description.get(name) for name in ("added_tokens", "symbols", "around"))
        if not isinstance(added, list):
            raise FormatError(f"added_tokens is {kind_of(added)} (must be a list)")
        if not isinstance(symbols, dict) or not all(type(id) is int for id in symbols.values()):
            raise FormatError(f"symbols is {str(symbols)[:60]} (must map tokens to ids)")
        if (
            not isinstance(around, list)
            or len(around) != 2
            or not all(
                isinstance(names, list) and all(isinstance(name, str) for name in names) for names in around
            )
        ):
            raise FormatError(f"around is {str(around)[:60]} (must be two lists of tokens)")
        return cls(
            read_model(description.get("model")),
            normalizer=normalizers.read(description.get("normalizer")),
            pre_tokenizer=pretokenizers.read(description.get("pre_tokenizer")),
            decoder=decoders.read(description.get("decoder")),
            added=map(AddedToken.from_dict, added),
            symbols=symbols,
            around=(tuple(around[0]), tuple(around[1])),
        )

    def normalize(self, text: str) -> str:
        """The text as the pre-tokenizer gets it."""
        return text if self.normalizer is None else self.normalizer(text)

    def _normalize_inside(self, text: str) -> str:
        inside = None if self.normalizer is None else self.normalizer.inside()
        return text if inside is None else inside(text)

    def _ids(self, text: str, special: frozenset[str], *, first: bool) -> list[int]:
        raw, normalized = self._finders_of(special)
        normalize = self.normalize if first else self._normalize_inside
        ids: list[int] = []
        for piece, token in raw.split(to_valid_utf8(text).decode()):
            if token is not None:
                ids.append(token.id)
                first = False
                continue
            first = first and bool(normalize(piece[:1]))  # what is removed counts as a beginning
            for part, found in normalized.split(normalize(piece)):
                if found is not None:
                    ids.append(found.id)
                else:
                    for word in self._split(part, first):
                        ids += self._words[word]
                first = False
        return ids

    def _split(self, text: str, first: bool) -> list[str]:
        return [text] if self.pre_tokenizer is None else self.pre_tokenizer.split(text, first)

    def _word_ids(self, word: str) -> list[int]:
        return self.model.ids(word if self.pre_tokenizer is None else self.pre_tokenizer.spell(word))

    def _finders_of(self, special: frozenset[str]) -> tuple[Finder, Finder]:
        """What is found in the text as it is, and in the normalized text."""
        if special not in self._finders:
            wanted = [token for token in self.added if not token.special or token.content in special]
            symbols = {name: AddedToken(id, name) for name, id in self.symbols.items()}
            normalized = {self.normalize(token.content): token for token in wanted if token.normalized}
            raw = {token.content: token for token in wanted if not token.normalized}
            self._finders[special] = Finder(raw), Finder(symbols | normalized)
        return self._finders[special]


def _by_id(vocab: Mapping[str, int], added: Mapping[str, int]) -> list[str]:
    """The token of each id; an id without a token has no text."""
    # A few gaps are usual, but one large id must not allocate gigabytes.
    most = 2 * (len(vocab) + len(added)) + 1024
    tokens: dict[int, str] = {}
    for token, id in [*vocab.items(), *added.items()]:
        if not 0 <= id < most:
            raise FormatError(f"token {token[:60]!r}: id {id} (must be from 0 to {most - 1})")
        if tokens.setdefault(id, token) != token:
            raise FormatError(
                f"token {token[:60]!r}: id {id} is that of {tokens[id][:60]!r} (must be its own)"
            )
    return [tokens.get(id, "") for id in range(max(tokens) + 1)]
