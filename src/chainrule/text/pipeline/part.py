"""A part of a pipeline: a dataclass that is read from and written to an object of `tokenizer.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any, Self, TypeVar

from chainrule.errors import FormatError, kind_of
from chainrule.text.splitting.patterns import SPELLINGS
from chainrule.text.unicode import expressions

Description = Mapping[str, Any]
P = TypeVar("P", bound="Part")


@dataclass(frozen=True)
class Part:
    """A part; its class has the name of its `type`."""

    def to_dict(self) -> dict[str, Any]:
        """The object that describes it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"type": type(self).__name__} | {name: _described(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, description: Description) -> Self:
        """The part that an object describes. Fields that it lacks have their default, others are not read."""
        return cls(**{field.name: cls._field(field, description) for field in fields(cls)})

    @classmethod
    def _field(cls, field: Any, description: Description) -> Any:
        value = description.get(field.name)
        if value is None and field.default is not MISSING:
            return field.default
        if field.type == "Find":
            return Find.from_dict(cls.__name__, value)
        kinds = {"bool": bool, "int": int, "str": str}
        kind = kinds[str(field.type).removesuffix(" | None")]
        if type(value) is not kind:
            raise FormatError(
                f"{cls.__name__}: {field.name} is {str(value)[:60]!r} (must be a {kind.__name__})"
            )
        return value


@dataclass(frozen=True)
class MetaspaceFields(Part):
    """What Metaspace, a pre-tokenizer and a decoder, has in a file."""

    replacement: str = "▁"
    prepend_scheme: str = "always"
    split_words: bool = True
    """Called `split` in files."""

    def to_dict(self) -> dict[str, Any]:
        found = super().to_dict()
        return found | {"split": found.pop("split_words")}

    @classmethod
    def from_dict(cls, description: Description) -> Self:
        old = description.get("add_prefix_space")  # of files before prepend_scheme
        scheme = {} if old is None else {"prepend_scheme": "always" if old else "never"}
        found = super().from_dict({**scheme, **description, "split_words": description.get("split")})
        if found.prepend_scheme not in ("always", "first", "never") or len(found.replacement) != 1:
            raise FormatError(
                f"Metaspace: {found.replacement!r}, prepend_scheme {found.prepend_scheme!r} "
                "(must be one character, and always, first or never)"
            )
        return found


def _described(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_described(part) for part in value]
    return value.to_dict() if isinstance(value, Part | Find) else value


def read_part(role: str, description: Any, known: Mapping[str, type[P]]) -> P | None:
    """The part that a description names; None for null. `role` says what it is for, such as "normalizer"."""
    if description is None:
        return None
    if not isinstance(description, dict):
        raise FormatError(f"{role} is {kind_of(description)} (must be an object)")
    name = description.get("type")
    if not isinstance(name, str) or name not in known:
        raise FormatError(f"{role} {name} is not supported (must be one of {', '.join(sorted(known))})")
    try:
        return known[name].from_dict(description)
    except FormatError as error:
        raise FormatError(f"{role} {error}") from None


def read_parts(
    role: str, field: str, description: Description, known: Mapping[str, type[P]]
) -> tuple[P, ...]:
    """The parts of a Sequence, in its field `field`."""
    listed = description.get(field)
    if not isinstance(listed, list):
        raise FormatError(f"Sequence without its {field} (must be a list of objects)")
    found = [read_part(role, entry, known) for entry in listed]
    return tuple(part for part in found if part is not None)


@dataclass(frozen=True)
class Find:
    """What a part looks for in a text: a string, or a regular expression (in Ruby's dialect, as Oniguruma reads it)."""

    text: str
    literal: bool = False

    @cached_property
    def _spans(self) -> expressions.Spans:
        if self.literal:
            literal = re.compile(re.escape(self.text))
            return lambda text: (match.span() for match in literal.finditer(text))
        return expressions.spans(SPELLINGS.get(self.text, self.text), ruby=True)

    def pieces(self, text: str) -> Iterator[tuple[str, bool]]:
        """All pieces of a text in turn, each with whether it matches; none is empty."""
        end = 0
        for begin, stop in self._spans(text) if self.text else ():
            if begin > end:
                yield text[end:begin], False
            if stop > begin:
                yield text[begin:stop], True
            end = stop
        if end < len(text):
            yield text[end:], False

    def replace(self, text: str, content: str) -> str:
        """The text with every match replaced."""
        if self.literal:
            return text.replace(self.text, content) if self.text else text
        parts, end = [], 0
        for begin, stop in self._spans(text):
            parts += [text[end:begin], content]
            end = stop
        return "".join([*parts, text[end:]])

    def to_dict(self) -> dict[str, str]:
        return {"String" if self.literal else "Regex": self.text}

    @classmethod
    def from_dict(cls, owner: str, description: Any) -> Find:
        if isinstance(description, dict) and len(description) == 1:
            (name, text), *_ = description.items()
            if name in ("String", "Regex") and isinstance(text, str):
                found = cls(text, literal=name == "String")
                found._spans  # noqa: B018 - an expression that cannot be used is refused when it is read
                return found
        raise FormatError(
            f'{owner}: pattern is {str(description)[:60]} (must be {{"String"}} or {{"Regex"}})'
        )
