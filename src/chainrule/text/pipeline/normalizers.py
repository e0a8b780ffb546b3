"""Normalizers: what changes a text before it is split into words."""

from __future__ import annotations

import base64
import binascii
import unicodedata
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

from chainrule.errors import FormatError
from chainrule.text.pipeline.charsmap import Charsmap
from chainrule.text.pipeline.part import Description, Find, Part, read_part, read_parts
from chainrule.text.splitting.normalize import BertRules
from chainrule.text.unicode.expressions import characters, know

LEADING = r"\A +"
know(r"\s+", LEADING, r" {2,}", r"[ ▁]+\z")  # CLIP's and SentencePiece's way with spaces


class Normalizer(Part, ABC):
    """text -> text"""

    @abstractmethod
    def __call__(self, text: str) -> str: ...

    def inside(self) -> Normalizer | None:
        """What it does to a text that continues another; None: nothing."""
        return self


class NFC(Normalizer):
    """A form of Unicode, that of its name."""

    def __call__(self, text: str) -> str:
        return unicodedata.normalize(type(self).__name__, text)  # type: ignore[arg-type]


class NFD(NFC): ...


class NFKC(NFC): ...


class NFKD(NFC): ...


class Lowercase(Normalizer):
    """Each character by itself: a Σ at the end of a word becomes σ like any other."""

    def __call__(self, text: str) -> str:
        return "".join(map(str.lower, text)) if "Σ" in text else text.lower()


@dataclass(frozen=True)
class Replace(Normalizer):
    pattern: Find
    content: str

    def __call__(self, text: str) -> str:
        return self.pattern.replace(text, self.content)

    def inside(self) -> Normalizer | None:
        return None if self.pattern == Find(LEADING) else self


@dataclass(frozen=True)
class Prepend(Normalizer):
    """Puts something before a text that is not empty."""

    prepend: str

    def __call__(self, text: str) -> str:
        return self.prepend + text if text else text

    def inside(self) -> None:
        return None


@dataclass(frozen=True)
class Strip(Normalizer):
    """Removes white space at the ends of a text."""

    strip_left: bool = True
    strip_right: bool = True

    def __call__(self, text: str) -> str:
        spaces = "".join(characters("space"))
        text = text.lstrip(spaces) if self.strip_left else text
        return text.rstrip(spaces) if self.strip_right else text


class StripAccents(Normalizer):
    """Removes combining marks, which accents are in a text of the form NFD."""

    def __call__(self, text: str) -> str:
        marks = characters("M")
        return text if text.isascii() else "".join(c for c in text if c not in marks)


@dataclass(frozen=True)
class BertNormalizer(Normalizer):
    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    """None: as `lowercase`."""
    lowercase: bool = True

    @cached_property
    def _rules(self) -> BertRules:
        accents = self.lowercase if self.strip_accents is None else self.strip_accents
        return BertRules(**asdict(self) | {"strip_accents": accents})

    def __call__(self, text: str) -> str:
        return self._rules.normalize(text)


@dataclass(frozen=True)
class Precompiled(Normalizer):
    """SentencePiece's table of replacements, such as nmt_nfkc, in base64."""

    precompiled_charsmap: str = ""

    @cached_property
    def _charsmap(self) -> Charsmap:
        try:
            return Charsmap(base64.b64decode(self.precompiled_charsmap, validate=True))
        except (binascii.Error, ValueError) as error:
            raise FormatError(f"Precompiled: precompiled_charsmap is not base64 ({error})") from None

    @classmethod
    def from_dict(cls, description: Description) -> Self:
        found = super().from_dict(description)
        found._charsmap  # noqa: B018 - a damaged one is refused when it is read
        return found

    def __call__(self, text: str) -> str:
        return self._charsmap.replace(text)


@dataclass(frozen=True)
class Sequence(Normalizer):
    normalizers: tuple[Normalizer, ...] = ()

    def __call__(self, text: str) -> str:
        for step in self.normalizers:
            text = step(text)
        return text

    def inside(self) -> Normalizer:
        steps = (step.inside() for step in self.normalizers)
        return Sequence(tuple(step for step in steps if step is not None))

    @classmethod
    def from_dict(cls, description: Description) -> Self:
        return cls(read_parts("normalizer", "normalizers", description, KNOWN))


KNOWN: dict[str, type[Normalizer]] = {
    kind.__name__: kind
    for kind in (
        NFC, NFD, NFKC, NFKD, Lowercase, Replace, Prepend, Strip, StripAccents, BertNormalizer, Precompiled, Sequence
    )
}  # fmt: skip


def read(description: Any) -> Normalizer | None:
    """The normalizer that an object of `tokenizer.json` describes."""
    return read_part("normalizer", description, KNOWN)
