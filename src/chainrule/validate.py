"""Rules for the fields of a config. What breaks one is a ConfigError that names owner, field, value and rule.

>>> from types import SimpleNamespace
>>> Check("GPT", SimpleNamespace(n_layer=0)).at_least(1, "n_layer")
Traceback (most recent call last):
chainrule.errors.ConfigError: GPT: n_layer is 0 (must be at least 1)
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from chainrule.errors import ConfigError
from chainrule.suggest import hinted

MOST_SEED = 2**64 - 1
MOST_COUNT = 10**12  # of anything: layers, tokens, steps
MOST_SECONDS = 365 * 24 * 3600  # of work: a year


class Duration:
    """Marks a number of seconds: a command line may say 10m or 2h."""


Seconds = Annotated[float, Duration]


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
        self._each(names, lambda x: x is not None and x >= least, f"must be at least {least}")
        self._each(names, lambda x: x <= MOST_COUNT, f"must be at most {MOST_COUNT:,}")

    def positive(self, *names: str) -> None:
        """Finite and above 0."""
        self._each(names, lambda x: math.isfinite(x) and x > 0, "must be a positive number")

    def duration(self, *names: str, unit: str = "seconds", seconds: int = 1) -> None:
        """Above 0 and at most a year, in a unit of so many seconds."""
        most = MOST_SECONDS // seconds
        rule = f"must be a positive number of {unit}, at most {most:,}, a year"
        self._each(names, lambda x: 0 < x <= most, rule)

    def finite(self, *names: str) -> None:
        self._each(names, math.isfinite, "must be a finite number")

    def not_negative(self, *names: str) -> None:
        """Finite, and 0 or more."""
        self._each(names, lambda x: math.isfinite(x) and x >= 0, "must be 0 or a positive number")

    def fraction(self, *names: str) -> None:
        """A part of a whole that leaves something, such as dropout."""
        self._each(names, lambda x: 0 <= x < 1, "must be at least 0 and below 1")

    def between(self, low: float, high: float, *names: str) -> None:
        """Both ends are allowed."""
        self._each(names, lambda x: low <= x <= high, f"must be from {low} to {high}")

    def whole(self, low: int, high: int | None, *names: str) -> None:
        """An integer; True and False, which Python counts as integers, are not."""

        def holds(x: Any) -> bool:
            integer = isinstance(x, numbers.Integral) and not isinstance(x, bool)
            return integer and low <= int(x) <= (MOST_COUNT if high is None else high)

        reach = f"at least {low} and at most {MOST_COUNT:,}" if high is None else f"from {low} to {high}"
        self._each(names, holds, f"must be an integer, {reach}")

    def one_of(self, name: str, choices: Iterable[str]) -> None:
        """A word out of a list."""
        known = tuple(choices)
        value = getattr(self.config, name)
        rule = f"must be one of {', '.join(known)}"
        self.require(value in known, name, rule=hinted(rule, str(value), known))

    def distinct(self, name: str) -> None:
        """A list in which nothing occurs twice."""
        items = list(getattr(self.config, name))
        twice = next((item for place, item in enumerate(items) if item in items[:place]), None)
        self.require(twice is None, name, rule=f"each must occur once, {twice!r} does not")

    def divides(self, part: str, whole: str, rule: str) -> None:
        """The value of `part` divides that of `whole`."""
        holds = getattr(self.config, whole) % getattr(self.config, part) == 0
        self.require(holds, whole, part, rule=rule)

    def seed(self, name: str = "seed") -> None:
        value = getattr(self.config, name)
        holds = isinstance(value, numbers.Integral) and 0 <= int(value) <= MOST_SEED
        self.require(holds, name, rule="must be from 0 to 2**64 - 1")

    def _each(self, names: Iterable[str], holds: Callable[[Any], bool], rule: str) -> None:
        """Refuse the first of these fields that breaks the rule; one that may be None, and is, breaks none."""
        for name in names:
            value = getattr(self.config, name)
            if value is not None or name not in self._optional:
                self.require(holds(value), name, rule=rule)
