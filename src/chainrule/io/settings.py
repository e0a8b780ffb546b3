"""Typed access to settings from a file of another program; a wrong value is refused in one line."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from chainrule.errors import FormatError

Fields = Mapping[str, tuple[str, bool | int | float | type]]
"""Fields of a config of ours that a file has as they are: its name of each, and what counts if it is left out, or the
type of what must be there."""


class Settings:
    """The settings of a model, such as a `config.json`; null counts as missing.

    `weights` names the arrays beside them: some files say only by what they hold which parts a model has.
    """

    def __init__(self, values: Mapping[str, Any], weights: Collection[str] = ()) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
        self.weights = weights

    def has(self, name: str) -> bool:
        """True if the setting is present."""
        return name in self.values

    def integer(self, *names: str, default: int | None = None) -> int:
        """The first of these settings that is present."""
        name, value = self._find(names, default)
        if type(value) is not int or not 0 <= value < 2**31:
            raise FormatError(f"{name} is {_short(value)} (must be a natural number below 2**31)")
        return value

    def number(self, *names: str, default: float | None = None) -> float:
        name, value = self._find(names, default)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise FormatError(f"{name} is {_short(value)} (must be a number)")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        name, value = self._find((name,), default)
        if type(value) is not bool:
            raise FormatError(f"{name} is {_short(value)} (must be true or false)")
        return value

    def choice(self, name: str, meanings: Mapping[str, str], default: str) -> str:
        """Our value for one of the file's."""
        name, value = self._find((name,), default)
        if not isinstance(value, str) or value not in meanings:
            raise FormatError(f"{name} is {_short(value)} (must be one of {', '.join(meanings)})")
        return meanings[value]

    def fields(self, table: Fields) -> dict[str, Any]:
        """Our fields; the type of a default is that of the value. `written` is the way back."""
        readers: dict[type, Any] = {bool: self.flag, int: self.integer, float: self.number}
        return {
            ours: readers[usual](theirs)
            if isinstance(usual, type)
            else readers[type(usual)](theirs, default=usual)
            for ours, (theirs, usual) in table.items()
        }

    def section(self, name: str) -> Settings:
        """Nested settings; empty if missing."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise FormatError(f"{name} is {_short(value)} (must be an object)")
        return Settings(value)

    def must(self, name: str, *known: Any) -> None:
        """Refuse other values of a setting; a missing one is fine."""
        value = self.values.get(name, known[0])
        if not any(type(value) is type(k) and value == k for k in known):
            words = " or ".join(map(str, known))
            raise FormatError(f"{name} is {_short(value)} (is not supported, must be {words})")

    def only(self, known: Collection[str]) -> None:
        """Refuse other settings that are set: one that is not read may change what is computed."""
        for name, value in self.values.items():
            if value and name not in known:
                raise FormatError(f"{name} is {_short(value)} (is not supported, must be left out)")

    def _find(self, names: tuple[str, ...], default: Any) -> tuple[str, Any]:
        for name in names:
            if name in self.values:
                return name, self.values[name]
        if default is None:
            raise FormatError(f"{names[0]} is missing (must be given)")
        return names[0], default


def written(config: Any, table: Fields) -> dict[str, Any]:
    """The fields of a config by their names in the file."""
    return {theirs: getattr(config, ours) for ours, (theirs, _) in table.items()}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
