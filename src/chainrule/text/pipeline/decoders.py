"""Decoders: what makes tokens a text again."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from chainrule.errors import FormatError
from chainrule.text.pipeline.part import Description, Find, MetaspaceFields, Part, read_part, read_parts
from chainrule.text.unicode.byte_alphabet import HIDDEN

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# English as it is written: what `cleanup` replaces, in this order.
CLEANED = {
    " .": ".", " ?": "?", " !": "!", " ,": ",", " ' ": "'", " n't": "n't", " 'm": "'m", " do not": " don't",
    " 's": "'s", " 've": "'ve", " 're": "'re",
}  # fmt: skip


class Decoder(Part, ABC):
    """Tokens -> parts of the text, which joined are the text."""

    @abstractmethod
    def __call__(self, tokens: list[str]) -> list[str]: ...


@dataclass(frozen=True)
class ByteLevel(Decoder):
    """Visible characters back to bytes; a token with other characters stands for itself."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def __call__(self, tokens: list[str]) -> list[str]:
        return [b"".join(map(token_bytes, tokens)).decode("utf-8", "replace")]


@dataclass(frozen=True)
class WordPiece(Decoder):
    prefix: str = "##"
    cleanup: bool = True

    def __call__(self, tokens: list[str]) -> list[str]:
        glued = [t.removeprefix(self.prefix) if t.startswith(self.prefix) else f" {t}" for t in tokens[1:]]
        return [cleaned(token) if self.cleanup else token for token in [*tokens[:1], *glued]]


@dataclass(frozen=True)
class BPEDecoder(Decoder):
    """The mark at the end of words becomes a space."""

    suffix: str = "</w>"

    def __call__(self, tokens: list[str]) -> list[str]:
        return [t.replace(self.suffix, " ") for t in tokens[:-1]] + [
            t.replace(self.suffix, "") for t in tokens[-1:]
        ]


@dataclass(frozen=True)
class Metaspace(MetaspaceFields, Decoder):
    def __call__(self, tokens: list[str]) -> list[str]:
        begins = " " if self.prepend_scheme == "never" else ""
        return [t.replace(self.replacement, " " if place else begins) for place, t in enumerate(tokens)]


@dataclass(frozen=True)
class Replace(Decoder):
    pattern: Find
    content: str

    def __call__(self, tokens: list[str]) -> list[str]:
        return [self.pattern.replace(token, self.content) for token in tokens]


class Fuse(Decoder):
    """All tokens as one."""

    def __call__(self, tokens: list[str]) -> list[str]:
        return ["".join(tokens)]


@dataclass(frozen=True)
class Strip(Decoder):
    """Removes a character from the start and the end of a token, up to so many times."""

    content: str = " "
    start: int = 0
    stop: int = 0

    def __call__(self, tokens: list[str]) -> list[str]:
        return [self._stripped(token) for token in tokens]

    def _stripped(self, token: str) -> str:
        before = len(token) - len(token.lstrip(self.content))
        token = token[min(before, self.start) :]
        after = len(token) - len(token.rstrip(self.content))
        return token[: len(token) - min(after, self.stop)]

    @classmethod
    def from_dict(cls, description: Description) -> Self:
        found = super().from_dict(description)
        if len(found.content) != 1 or found.start < 0 or found.stop < 0:
            raise FormatError(
                f"Strip: content {found.content!r} (must be one character, its counts at least 0)"
            )
        return found


class ByteFallback(Decoder):
    """Tokens such as <0xE2> back to characters; bytes that are not UTF-8 become U+FFFD, each."""

    def __call__(self, tokens: list[str]) -> list[str]:
        found: list[str] = []
        bytes_before = bytearray()
        for token in tokens:
            if (byte := BYTE.fullmatch(token)) is not None:
                bytes_before.append(int(byte[1], 16))
            else:
                found += [*_characters(bytes_before), token]
                bytes_before.clear()
        return found + _characters(bytes_before)


@dataclass(frozen=True)
class Sequence(Decoder):
    decoders: tuple[Decoder, ...] = ()

    def __call__(self, tokens: list[str]) -> list[str]:
        for step in self.decoders:
            tokens = step(tokens)
        return tokens

    @classmethod
    def from_dict(cls, description: Description) -> Self:
        return cls(read_parts("decoder", "decoders", description, KNOWN))


KNOWN: dict[str, type[Decoder]] = {
    kind.__name__: kind
    for kind in (ByteLevel, WordPiece, BPEDecoder, Metaspace, Replace, Fuse, Strip, ByteFallback, Sequence)
}


def read(description: Any) -> Decoder | None:
    """The decoder that an object of `tokenizer.json` describes."""
    return read_part("decoder", description, KNOWN)


def cleaned(text: str) -> str:
    """English without the spaces that splitting put in."""
    for spaced, plain in CLEANED.items():
        text = text.replace(spaced, plain)
    return text


def token_bytes(token: str) -> bytes:
    """The bytes of a token in GPT-2's alphabet; another token is its own UTF-8."""
    try:
        return bytes(HIDDEN[ord(character)] for character in token)
    except KeyError:
        return token.encode("utf-8", "replace")


def _characters(content: bytearray) -> list[str]:
    if not content:
        return []
    try:
        return [content.decode()]
    except UnicodeDecodeError:
        return ["\ufffd"] * len(content)
