"""Exercises: a number, or an expression, compared with the one the lesson keeps. Nothing of an answer is executed.

    ask: What is the slope of x² at x = 3?
    answer: 6
    within: 0.01                    for a number; a hundredth of it unless given
    hint: The slope of x² is 2x.
    why: Twice 3.

An answer with names, such as `2 * x`, asks for an expression: it is right if it has the same values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from chainrule.errors import ChainruleError, ConfigError
from chainrule.scalar import Expression

PROBES = (0.37, 1.3, 2.1)  # values of the names of an expression, each in turn first
KNOWN = {"pi": math.pi}  # names that any answer may use
SAME = 1e-6  # relative difference of two expressions


@dataclass(frozen=True)
class Exercise:
    """A question and how an answer is judged."""

    ask: str
    answer: str
    within: float | None = None
    hint: str = ""
    why: str = ""

    @classmethod
    def read(cls, text: str, path: Path) -> Exercise:
        """From the lines of a fence."""
        given: dict[str, Any] = {}
        known = [field.name for field in fields(cls)]
        for line in text.splitlines():
            name, colon, value = line.partition(": ")
            if not colon or name not in known or name in given:
                raise ConfigError(
                    f"{path}: exercise has {line[:60]!r} (must be one each of {', '.join(known)})"
                )
            given[name] = value
        if "ask" not in given or "answer" not in given:
            raise ConfigError(f"{path}: an exercise without a question or an answer")
        if "within" in given:
            try:
                given["within"] = float(given["within"])
            except ValueError:
                raise ConfigError(f"{path}: within is {given['within'][:40]!r} (must be a number)") from None
        try:
            Expression.read(given["answer"])
        except ChainruleError as error:
            raise ConfigError(f"{path}: answer {given['answer'][:40]!r}: {error}") from None
        return cls(**given)

    def judge(self, reply: str) -> dict[str, Any]:
        """Whether an answer is right, in words."""
        wanted, given = Expression.read(self.answer), Expression.read(_typed(reply))
        names = [name for name in wanted.variables if name not in KNOWN]
        unknown = [name for name in given.variables if name not in (*names, *KNOWN)]
        if unknown:
            allowed = ", ".join(names) or "no names: the answer is a number"
            raise ConfigError(f"answer: {unknown[0]} is not a name of the question (must be {allowed})")
        if not names:
            return self._number(_value(wanted, {}), _value(given, {}))
        for i in range(len(PROBES)):
            values = {name: PROBES[(i + j) % len(PROBES)] for j, name in enumerate(names)}
            right, found = _value(wanted, values), _value(given, values)
            if not math.isclose(right, found, rel_tol=SAME, abs_tol=SAME):
                at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
                return self._said(
                    False, f"Not yet: at {at} yours is {found:.4g}, and it should be {right:.4g}."
                )
        return self._said(True, "Right.")

    def _number(self, right: float, found: float) -> dict[str, Any]:
        within = max(abs(right) / 100, 1e-9) if self.within is None else self.within
        if abs(right - found) <= within:
            return self._said(True, "Right.")
        return self._said(False, f"Not yet: {found:.4g} is too {'large' if found > right else 'small'}.")

    def _said(self, right: bool, said: str) -> dict[str, Any]:
        return {"right": right, "said": said, "more": self.why if right else self.hint}


def _typed(reply: str) -> str:
    """An answer as people write it: 2π, x^2, a long minus."""
    times = re.sub(r"(?<=[\d.])\s*π", "*pi", reply)
    return times.replace("π", "pi").replace("−", "-").replace("^", "**")


def _value(expression: Expression, values: Mapping[str, float]) -> float:
    known = {name: value for name, value in KNOWN.items() if name in expression.variables}
    return float(expression.graph({**known, **values})[expression.root].data)
