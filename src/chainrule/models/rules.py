"""What the sizes of every model must obey. `kind` begins the message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from chainrule.errors import ConfigError


def at_least_one(kind: str, config: Any, names: Iterable[str]) -> None:
    """Numbers of things: layers, heads, tokens. None is fine where it is the default."""
    optional = {field.name for field in fields(config) if field.default is None}
    for name in names:
        value = getattr(config, name)
        if value is None and name in optional:
            continue
        if value is None or value < 1:
            raise ConfigError(f"{kind}: {name} is {value} (must be at least 1)")


def a_share(kind: str, config: Any, names: Iterable[str]) -> None:
    """Parts of a whole, such as dropout, that leave something."""
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise ConfigError(f"{kind}: {name} is {getattr(config, name)} (must be at least 0 and below 1)")


def positive(kind: str, config: Any, names: Iterable[str]) -> None:
    """Also refuses NaN."""
    for name in names:
        if not getattr(config, name) > 0:
            raise ConfigError(f"{kind}: {name} is {getattr(config, name)} (must be positive)")


def one_of(kind: str, config: Any, name: str, choices: Iterable[str]) -> None:
    """A word out of a list."""
    known = tuple(choices)
    if getattr(config, name) not in known:
        raise ConfigError(f"{kind}: {name} is {getattr(config, name)!r} (must be one of {', '.join(known)})")


def heads_divide(kind: str, config: Any, unless: str = "") -> None:
    """Each head takes an equal part of the width."""
    if config.n_embd % config.n_head:
        raise ConfigError(
            f"{kind}: n_embd is {config.n_embd}, n_head {config.n_head} (heads must divide the width{unless})"
        )
