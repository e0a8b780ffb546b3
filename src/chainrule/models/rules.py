"""What the sizes of every model must obey. `kind` begins the message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule.validate import Check


def at_least_one(kind: str, config: Any, names: Iterable[str]) -> None:
    """Numbers of things: layers, heads, tokens. None is fine where it is the default."""
    Check(kind, config).at_least(1, *names)


def a_share(kind: str, config: Any, names: Iterable[str]) -> None:
    """Parts of a whole, such as dropout, that leave something."""
    Check(kind, config).fraction(*names)


def positive(kind: str, config: Any, names: Iterable[str]) -> None:
    """Also refuses NaN."""
    Check(kind, config).positive(*names)


def one_of(kind: str, config: Any, name: str, choices: Iterable[str]) -> None:
    """A word out of a list."""
    Check(kind, config).one_of(name, choices)


def heads_divide(kind: str, config: Any, unless: str = "") -> None:
    """Each head takes an equal part of the width."""
    Check(kind, config).divides("n_head", "n_embd", f"heads must divide the width{unless}")
