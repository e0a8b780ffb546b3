"""What a person changed inside a model, as the page writes it down: JSON in the address, edits of `inspect`, Python.

[{"kind": "off", "block": "h.0", "head": 1}, {"kind": "steer", "block": "h.1", "towards": "a", "away": "b", "scale": 4}]
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from chainrule import inspect
from chainrule.errors import ConfigError
from chainrule.web.microscope.reading import Reading, read
from chainrule.web.models import Loaded

MOST = 40  # edits at a time


@dataclass(frozen=True)
class Change:
    """One change in a block."""

    kind: ClassVar[str]
    block: str

    def edit(self, loaded: Loaded, reading: Reading) -> inspect.Edit:
        """What `inspect` calls it."""
        raise NotImplementedError

    def python(self, loaded: Loaded, n: int) -> tuple[list[str], str]:
        """The same in Python, as the n-th edit: lines that prepare it, and the edit."""
        raise NotImplementedError

    @property
    def said(self) -> str:
        """In words."""
        raise NotImplementedError


# -- heads ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head(Change):
    """A change of one head; with `cross` of one that looks at a source."""

    head: int
    cross: bool = False

    @property
    def place(self) -> str:
        return f"{self.block} head {self.head}" + (" to the source" if self.cross else "")

    def call(self, name: str, *more: str) -> str:
        words = [repr(self.block), repr(self.head), *more, *(["cross=True"] if self.cross else [])]
        return f"cr.inspect.{name}({', '.join(words)})"


@dataclass(frozen=True)
class Off(Head):
    """A head adds nothing."""

    kind = "off"

    def edit(self, loaded: Loaded, reading: Reading) -> inspect.Edit:
        return inspect.ZeroHeads(self.block, self.head, self.cross)

    def python(self, loaded: Loaded, n: int) -> tuple[list[str], str]:
        return [], self.call("ZeroHeads")

    @property
    def said(self) -> str:
        return f"{self.place} off"


@dataclass(frozen=True)
class Mean(Head):
    """A head adds the same at every token: its mean."""

    kind = "mean"

    def edit(self, loaded: Loaded, reading: Reading) -> inspect.Edit:
        return inspect.MeanHeads(self.block, self.head, self.cross)

    def python(self, loaded: Loaded, n: int) -> tuple[list[str], str]:
        return [], self.call("MeanHeads")

    @property
    def said(self) -> str:
        return f"{self.place} at its mean"


@dataclass(frozen=True)
class Look(Head):
    """One token of a head looks at one other alone."""

    kind = "look"
    query: int = 0
    key: int = 0

    def edit(self, loaded: Loaded, reading: Reading) -> inspect.Edit:
        def row(A: Any) -> Any:  # (1, T, S)
            if not (0 <= self.query < A.shape[-2] and 0 <= self.key < A.shape[-1]):
                rule = f"must be within {A.shape[-2]} × {A.shape[-1]}"
                raise ConfigError(f"microscope: token {self.query} looks at {self.key} ({rule})")
            return np.where(
                (np.arange(A.shape[-2]) == self.query)[:, None], np.arange(A.shape[-1]) == self.key, A
            )

        return inspect.SetPattern(self.block, self.head, row, self.cross)

    def python(self, loaded: Loaded, n: int) -> tuple[list[str], str]:
        chosen = f"(np.arange(A.shape[-2]) == {self.query})[:, None], np.arange(A.shape[-1]) == {self.key}"
        return [], self.call("SetPattern", f"lambda A: np.where({chosen}, A)")

    @property
    def said(self) -> str:
        return f"{self.place}: token {self.query} looks at {self.key} alone"


def _previous(A: Any) -> Any:
    T, S = A.shape[-2:]
    return np.eye(S)[np.maximum(np.arange(T) - 1, 0) + S - T]


PATTERNS: dict[str, tuple[str, Callable[[Any], Any], str]] = {  # in words, as a function, in Python
    "previous": (
        "the token before",
        _previous,
        "np.eye(A.shape[-1])[np.maximum(np.arange(A.shape[-2]) - 1, 0) + A.shape[-1] - A.shape[-2]]",
    ),
    "first": (
        "the first token",
        lambda A: np.eye(A.shape[-1])[np.zeros(A.shape[-2], int)],
        "np.eye(A.shape[-1])[np.zeros(A.shape[-2], int)]",
    ),
    "even": (
        "all tokens alike",
        lambda A: (A > 0) / (A > 0).sum(-1, keepdims=True),
        "(A > 0) / (A > 0).sum(-1, keepdims=True)",
    ),
}


@dataclass(frozen=True)
class Pattern(Head):
    """A head has a well-known pattern."""

    kind = "pattern"
    pattern: str = "previous"

    def edit(self, loaded: Loaded, reading: Reading) -> inspect.Edit:
        if self.pattern not in PATTERNS or (self.cross and self.pattern == "previous"):
            rule = f"must be one of {', '.join(PATTERNS)}; previous only within a text"
            raise ConfigError(f"microscope: pattern {self.pattern[:40]!r} ({rule})")
        return inspect.SetPattern(self.block, self.head, PATTERNS[self.pattern][1], self.cross)

    def python(self, loaded: Loaded, n: int) -> tuple[list[str], str]:
        return [], self.call("SetPattern", f"lambda A: {PATTERNS[self.pattern][2]}")

    @property
    def said(self) -> str:
        return f"{self.place} looks at {PATTERNS[self.pattern][0]}"


# -- the stream -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Patch(Change):
    """The stream after a block, or what a part adds to it, is that of another text, at one token or at all."""

    kind = "patch"
    text: str
    at: int | None = None
    part: str = "stream"
    target: str | None = None

    def edit(self, loaded: Loaded, reading: Reading) -> inspect.Edit:
        other = read(loaded, self.text, self.target)
        other.check_as_long(reading)
        value = inspect.view(loaded.model, other.ids).part(self.block, self.part)
        return inspect.Patch(self.block, value, self.at, self.part)

    def python(self, loaded: Loaded, n: int) -> tuple[list[str], str]:
        lines = read(loaded, self.text, self.target).lines(f"other_{n}")
        place = f"{self.block!r}, {self.part!r}"
        return (
            lines,
            f"cr.inspect.Patch({self.block!r}, cr.inspect.view(model, other_{n}).part({place}), {self.at!r}, "
            f"{self.part!r})",
        )

    @property
    def said(self) -> str:
        where = "every token" if self.at is None else f"token {self.at}"
        return f"{self.part} of {self.block} at {where} from “{self.text[:40]}”"


@dataclass(frozen=True)
class Steer(Change):
    """The stream after a block is pushed from what one text is towards what another is."""

    kind = "steer"
    towards: str
    away: str
    scale: float = 4.0

    def edit(self, loaded: Loaded, reading: Reading) -> inspect.Edit:
        towards, away = ([read(loaded, text).ids] for text in (self.towards, self.away))
        vector = inspect.steering_vector(loaded.model, towards, away, self.block)
        return inspect.Steer(self.block, vector, self.scale)

    def python(self, loaded: Loaded, n: int) -> tuple[list[str], str]:
        lines = [
            *read(loaded, self.towards).lines(f"towards_{n}"),
            *read(loaded, self.away).lines(f"away_{n}"),
        ]
        vector = f"cr.inspect.steering_vector(model, [towards_{n}], [away_{n}], {self.block!r})"
        return lines, f"cr.inspect.Steer({self.block!r}, {vector}, {self.scale!r})"

    @property
    def said(self) -> str:
        return f"{self.block} pushed {self.scale:g} × from “{self.away[:30]}” towards “{self.towards[:30]}”"


# -- from the address --------------------------------------------------------------------------------------------

KINDS: dict[str, type[Change]] = {each.kind: each for each in (Off, Mean, Look, Pattern, Patch, Steer)}


def changes_of(text: str) -> list[Change]:
    """The changes that an address holds."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) > MOST:
        raise ConfigError(
            f"microscope: edits {text[:60]!r} (must be a list of at most {MOST} edits, in JSON)"
        )
    return [_change(each) for each in found]


def _change(given: Any) -> Change:
    kind = KINDS.get(str(given.get("kind"))) if isinstance(given, dict) else None
    if kind is None:
        raise ConfigError(f"microscope: edit {str(given)[:60]} (must have a kind: {', '.join(KINDS)})")
    values = {}
    for field in fields(kind):
        value = given.get(field.name)
        if value is None:
            if field.default is MISSING:
                raise ConfigError(f"microscope: edit {kind.kind} has no {field.name} (must have one)")
            continue
        values[field.name] = _typed(f"{kind.kind}: {field.name}", str(field.type), value)
    return kind(**values)


def _typed(name: str, wanted: str, value: Any) -> Any:
    kind = wanted.partition(" ")[0]  # such as int | None
    fits = {
        "int": type(value) is int,
        "float": type(value) in (int, float) and math.isfinite(value),
        "bool": type(value) is bool,
        "str": type(value) is str,
    }[kind]
    if not fits:
        raise ConfigError(f"microscope: edit {name} is {str(value)[:40]!r} (must be of type {kind})")
    return value
