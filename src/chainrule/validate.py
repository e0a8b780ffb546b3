"""Rules for the fields of a config. What breaks one is a ConfigError that names owner, field, value and rule.

>>> from types import SimpleNamespace
>>> Check("GPT", SimpleNamespace(n_layer=0)).at_least(1, "n_layer")
Traceback (most recent call last):
chainrule.errors.ConfigError: GPT: n_layer is 0 (must be at least 1)
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from chainrule.errors import ConfigError
from chainrule.suggest import hinted

MOST_SEED = 2**64 - 1


class Check:
    """The rules, for one config; `owner` begins the message. A field that is None by default may be None."""

    def __init__(self, owner: str, config: Any) -> None:
        self.owner = owner
        self.config = config
        known = fields(config) if is_dataclass(config) else ()
        self._optional = {field.name for field in known if field.default is None}

    def require(self, holds: bool, *names: str, rule: str, fix: str = "") -> None:
        """Refuse the values of these fields unless the rule holds."""
        if not holds:
            settings = {name: getattr(self.config, name) for name in names}
            raise ConfigError.of(self.owner, settings, rule, fix)

    def at_least(self, least: int, *names: str) -> None:
        """Numbers of things: layers, heads, tokens."""
        for name, value in self._values(names):
            self.require(value is not None and value >= least, name, rule=f"must be at least {least}")

    def positive(self, *names: str, of: str = "") -> None:
        """Finite and above 0."""
        for name, value in self._values(names):
            holds = math.isfinite(value) and value > 0
            self.require(holds, name, rule=f"must be a positive number{of and f' of {of}'}")

    def finite(self, *names: str) -> None:
        for name, value in self._values(names):
            self.require(math.isfinite(value), name, rule="must be a finite number")

    def not_negative(self, *names: str) -> None:
        """Finite, and 0 or more."""
        for name, value in self._values(names):
            self.require(math.isfinite(value) and value >= 0, name, rule="must be 0 or a positive number")

    def fraction(self, *names: str) -> None:
        """A part of a whole that leaves something, such as dropout."""
        for name, value in self._values(names):
            self.require(0 <= value < 1, name, rule="must be at least 0 and below 1")

    def between(self, low: float, high: float, *names: str) -> None:
        """Both ends are allowed."""
        for name, value in self._values(names):
            self.require(low <= value <= high, name, rule=f"must be from {low} to {high}")

    def whole(self, low: int, high: int | None, *names: str) -> None:
        """An integer, and no switch, which to Python is one."""
        for name, value in self._values(names):
            kind = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            reach = f"at least {low}" if high is None else f"from {low} to {high}"
            holds = kind and low <= value <= (value if high is None else high)
            self.require(holds, name, rule=f"must be an integer, {reach}")

    def one_of(self, name: str, choices: Iterable[str]) -> None:
        """A word out of a list."""
        known = tuple(choices)
        value = getattr(self.config, name)
        rule = f"must be one of {', '.join(known)}"
        self.require(value in known, name, rule=hinted(rule, str(value), known))

    def divides(self, part: str, whole: str, rule: str) -> None:
        """The value of `part` divides that of `whole`."""
        holds = getattr(self.config, whole) % getattr(self.config, part) == 0
        self.require(holds, whole, part, rule=rule)

    def seed(self, name: str = "seed") -> None:
        value = getattr(self.config, name)
        holds = isinstance(value, numbers.Integral) and 0 <= int(value) <= MOST_SEED
        self.require(holds, name, rule="must be from 0 to 2**64 - 1")

    def _values(self, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """The fields that have a value."""
        for name in names:
            value = getattr(self.config, name)
            if value is not None or name not in self._optional:
                yield name, value
