"""Pre-tokenizers: what splits a text into the words that the model cuts."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from chainrule.errors import FormatError
from chainrule.text.pipeline.part import Description, Find, MetaspaceFields, Part, read_part, read_parts
from chainrule.text.splitting.normalize import is_punctuation, is_space
from chainrule.text.splitting.patterns import GPT2
from chainrule.text.splitting.pretokenize import isolate
from chainrule.text.unicode.byte_alphabet import show
from chainrule.text.unicode.expressions import know
from chainrule.text.unicode.utf8 import to_valid_utf8

BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
WORDS, NUMBER, SPACES = r"\w+|[^\w\s]+", r"\p{N}", r"\s"
know(WORDS, NUMBER, SPACES)

Pieces = list[tuple[str, bool]]  # pieces of a text, each with whether it matches


class PreTokenizer(Part, ABC):
    """A piece of text -> words. `first` is true for the piece that begins the text."""

    @abstractmethod
    def split(self, text: str, first: bool) -> list[str]: ...

    def spell(self, word: str) -> str:
        """A word as the model spells it."""
        return word


@dataclass(frozen=True)
class Split(PreTokenizer):
    """Splits at what a pattern matches; `behavior` says where the matches go, `invert` takes the rest as matches."""

    pattern: Find
    behavior: str = "Removed"
    invert: bool = False

    def split(self, text: str, first: bool) -> list[str]:
        pieces = [(piece, match != self.invert) for piece, match in self.pattern.pieces(text)]
        return combine(pieces, self.behavior)

    def __post_init__(self) -> None:
        check_behavior(self.behavior)


@dataclass(frozen=True)
class Digits(PreTokenizer):
    individual_digits: bool = False
    _number: ClassVar[Find] = Find(NUMBER)

    def split(self, text: str, first: bool) -> list[str]:
        behavior = "Isolated" if self.individual_digits else "Contiguous"
        return combine(list(self._number.pieces(text)), behavior)


class Whitespace(PreTokenizer):
    """Words and runs of other characters; white space is removed."""

    _words: ClassVar[Find] = Find(WORDS)

    def split(self, text: str, first: bool) -> list[str]:
        return [piece for piece, match in self._words.pieces(text) if match]


class WhitespaceSplit(PreTokenizer):
    _space: ClassVar[Find] = Find(SPACES)

    def split(self, text: str, first: bool) -> list[str]:
        return [piece for piece, match in self._space.pieces(text) if not match]


@dataclass(frozen=True)
class Punctuation(PreTokenizer):
    behavior: str = "Isolated"

    def split(self, text: str, first: bool) -> list[str]:
        return combine(
            [(character, is_punctuation(character)) for character in text], self.behavior, joined=True
        )

    def __post_init__(self) -> None:
        check_behavior(self.behavior)


class BertPreTokenizer(PreTokenizer):
    """Words and punctuation marks; white space is removed."""

    def split(self, text: str, first: bool) -> list[str]:
        spaced = (f" {c} " if is_punctuation(c) else " " if is_space(c) else c for c in text)
        return [word for word in "".join(spaced).split(" ") if word]


@dataclass(frozen=True)
class CharDelimiterSplit(PreTokenizer):
    delimiter: str

    def split(self, text: str, first: bool) -> list[str]:
        return [word for word in text.split(self.delimiter or " ") if word]


@dataclass(frozen=True)
class ByteLevel(PreTokenizer):
    """GPT-2's words, if `use_regex`, and bytes as visible characters."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def split(self, text: str, first: bool) -> list[str]:
        if self.add_prefix_space and not text.startswith(" "):
            text = " " + text
        return isolate(text, GPT2) if self.use_regex else [text]

    def spell(self, word: str) -> str:
        return show(to_valid_utf8(word))


@dataclass(frozen=True)
class Metaspace(MetaspaceFields, PreTokenizer):
    """Spaces become ▁; one is put before the text (`first`), or before every piece of it (`always`)."""

    def split(self, text: str, first: bool) -> list[str]:
        text = text.replace(" ", self.replacement)
        wanted = self.prepend_scheme == "always" or (self.prepend_scheme == "first" and first)
        if wanted and not text.startswith(self.replacement):
            text = self.replacement + text
        if not self.split_words:
            return [text] if text else []
        return [word for word in re.split(f"(?={re.escape(self.replacement)})", text) if word]


@dataclass(frozen=True)
class Sequence(PreTokenizer):
    pretokenizers: tuple[PreTokenizer, ...] = ()

    def split(self, text: str, first: bool) -> list[str]:
        words = [text]
        for place, step in enumerate(self.pretokenizers):
            spell = self.pretokenizers[place - 1].spell if place else None
            if spell is not None:
                words = [spell(word) for word in words]
            words = [
                part for number, word in enumerate(words) for part in step.split(word, first and not number)
            ]
        return words

    def spell(self, word: str) -> str:
        """As the last step spells it; the steps before have done so."""
        return self.pretokenizers[-1].spell(word) if self.pretokenizers else word

    @classmethod
    def from_dict(cls, description: Description) -> Self:
        return cls(read_parts("pre_tokenizer", "pretokenizers", description, KNOWN))


KNOWN: dict[str, type[PreTokenizer]] = {
    kind.__name__: kind
    for kind in (
        Split, Digits, Whitespace, WhitespaceSplit, Punctuation, BertPreTokenizer, CharDelimiterSplit, ByteLevel,
        Metaspace, Sequence
    )
}  # fmt: skip


def read(description: Any) -> PreTokenizer | None:
    """The pre-tokenizer that an object of `tokenizer.json` describes."""
    return read_part("pre_tokenizer", description, KNOWN)


def check_behavior(behavior: str) -> None:
    if behavior not in BEHAVIORS:
        raise FormatError(f"behavior {behavior!r} is not supported (must be one of {', '.join(BEHAVIORS)})")


def combine(pieces: Pieces, behavior: str, *, joined: bool = False) -> list[str]:
    """Words from pieces; `joined` pieces that do not match belong together.

    >>> pieces = [("a", False), ("-", True), ("-", True), ("b", False)]
    >>> [combine(pieces, behavior) for behavior in BEHAVIORS]
    [['a', 'b'], ['a', '-', '-', 'b'], ['a-', '-', 'b'], ['a', '-', '-b'], ['a', '--', 'b']]
    """
    if joined:
        pieces = _runs(pieces, of_matches=False)
    if behavior == "Removed":
        return [piece for piece, match in pieces if not match]
    if behavior == "Contiguous":
        return [piece for piece, _ in _runs(pieces, of_matches=True)]
    if behavior == "MergedWithNext":
        backwards = combine([(piece[::-1], match) for piece, match in pieces[::-1]], "MergedWithPrevious")
        return [word[::-1] for word in backwards[::-1]]
    words: list[str] = []
    before = False
    for piece, match in pieces:
        if behavior == "MergedWithPrevious" and match and not before and words:
            words[-1] += piece
        else:
            words.append(piece)
        before = match
    return words


def _runs(pieces: Pieces, *, of_matches: bool) -> Pieces:
    """Neighbors that both match, or both do not, in one piece; without `of_matches` matches stay alone."""
    found: Pieces = []
    for piece, match in pieces:
        if found and found[-1][1] == match and (of_matches or not match):
            found[-1] = found[-1][0] + piece, match
        else:
            found.append((piece, match))
    return found
