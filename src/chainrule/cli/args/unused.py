"""Options that were given and would not be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from chainrule.cli.args.options import Given, default_of
from chainrule.errors import ConfigError, Setting


def given(options: Any, but: Collection[str] = ()) -> Iterator[str]:
    """The fields of a dataclass, and of the dataclasses in it, that differ from their defaults, in order."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            yield from given(value, but)
        elif field.name not in but and not isinstance(value, Given) and value != default_of(field):
            yield field.name


def refuse(command: str, options: Any, why: str, but: Collection[str] = ()) -> None:
    """Refuse the first option that is given, except `but`: it would be ignored."""
    for name in given(options, but):
        raise ConfigError(f"{command}: ", Setting(name), f" is given {why}")
