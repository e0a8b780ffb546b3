"""The options of a command: the fields of its dataclass, and of the dataclasses that are its fields."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from chainrule.cli.args.kinds import Kind, kind_of

GIVEN = "given"
Given = Annotated[frozenset[str], GIVEN]  # a field that holds the names of the options that were given


@dataclass(frozen=True)
class Argument:
    """Marks a field that is given by its place instead of a flag."""

    shown: str


@dataclass(frozen=True)
class Help:
    """The help of a field that has no string below it."""

    text: str


@dataclass(frozen=True)
class Without:
    """Marks a dataclass inside a command some of whose fields have no flag."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Option:
    """A field of a command."""

    name: str
    kind: Kind
    owner: type[Any]
    """The dataclass it is a field of."""
    default: Any
    """MISSING if it must be given."""
    argument: str = ""
    """Its name in the usage, if it is given by its place."""
    told: str | None = None

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def help(self) -> str:
        """The string below the field."""
        return documented(self.owner).get(self.name, "") if self.told is None else self.told


def options_of(command: type[Any]) -> list[Option]:
    """In the order of the fields, those of inner dataclasses last."""
    return [*_options(command, command(**_placeholders(command)))]


def inner(command: type[Any]) -> Iterator[Field[Any]]:
    """The fields that are dataclasses themselves."""
    hints = get_type_hints(command)
    yield from (field for field in fields(command) if is_dataclass(hints[field.name]))


def _options(owner: type[Any], default: Any, without: tuple[str, ...] = ()) -> Iterator[Option]:
    hints = get_type_hints(owner, include_extras=True)
    last: list[Iterator[Option]] = []
    for field in fields(owner):
        hint = hints[field.name]
        marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
        plain = get_args(hint)[0] if marks else hint
        if is_dataclass(plain) and isinstance(plain, type):
            hidden = next((mark.names for mark in marks if isinstance(mark, Without)), ())
            last.append(_options(plain, getattr(default, field.name), hidden))
            continue
        kind = None if GIVEN in marks or field.name in without else kind_of(plain, marks)
        if kind is None:
            continue
        argument = next((mark.shown for mark in marks if isinstance(mark, Argument)), "")
        told = next((mark.text for mark in marks if isinstance(mark, Help)), None)
        value = MISSING if _is_required(field) else getattr(default, field.name)
        yield Option(field.name, kind, owner, value, argument, told)
    for options in last:
        yield from options


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _placeholders(command: type[Any]) -> dict[str, None]:
    """Something for each field that must be given, so that the defaults of the others can be looked at."""
    return {field.name: None for field in fields(command) if _is_required(field)}


def documented(config: type[Any]) -> dict[str, str]:
    """The strings below the fields of a dataclass: Python keeps them in its source only."""
    found: dict[str, str] = {}
    for cls in reversed(config.__mro__):
        for pair in pairwise(_classes(cls.__module__).get(cls.__name__, ())):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


@cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    """The bodies of the classes of a module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    tree = ast.parse(Path(file).read_text(encoding="utf-8")).body if file else []
    return {node.name: node.body for node in tree if isinstance(node, ast.ClassDef)}
