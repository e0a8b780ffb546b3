"""The options of a command: the fields of its dataclass, and of the dataclasses that are its fields."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

from chainrule.cli.args.kinds import Kind, kind_of
from chainrule.cli.args.outputs import Output


class Given(frozenset[str]):
    """The names of the options that were given; a field that holds it has no flag."""


class Argument(str):
    """Marks a field that is given by its place instead of a flag; the text is its name in the usage."""


class Also(str):
    """Marks a field with a second flag, by which it was known before; help shows the first alone."""


class Help(str):
    """The help of a field that has no string below it."""


@dataclass(frozen=True, kw_only=True)
class Reporting:
    """A command whose result programs can read."""

    json: bool = False
    """Print one JSON object instead of text."""

    def report(self, found: Mapping[str, Any], words: Callable[[], str]) -> None:
        """Print a result: as JSON for programs, in words, made only then, for people."""
        print(json.dumps(found) if self.json else words())


class Without(tuple[str, ...]):
    """Marks a dataclass inside a command: these of its fields have no flag."""


@dataclass(frozen=True)
class Option:
    """A field of a command."""

    name: str
    kind: Kind
    owner: type[Any]  # the dataclass it is a field of
    default: Any  # MISSING if it must be given
    argument: str = ""  # its name in the usage, if it is given by its place
    told: str = ""  # its help, if there is no string below the field
    output: Output | None = None  # it is a path that is written
    also: str = ""  # a second name of its flag

    @property
    def flag(self) -> str:
        """As it is written on a command line, or named in the usage."""
        return self.argument or f"--{self.name.replace('_', '-')}"

    @property
    def help(self) -> str:
        return self.told or documented(self.owner).get(self.name, "")


def options_of(command: type[Any]) -> list[Option]:
    """In the order of the fields, what all commands of a kind have after their own, inner dataclasses last."""
    own = sorted(fields(command), key=lambda field: bool(field.kw_only))
    return list(_options(command, {field.name: default_of(field) for field in own}))


def default_of(field: Field[Any]) -> Any:
    """What a field holds if nothing is given; MISSING if it must be."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _options(owner: type[Any], defaults: Mapping[str, Any], hidden: Sequence[str] = ()) -> Iterator[Option]:
    hints = get_type_hints(owner, include_extras=True)
    last: list[Iterator[Option]] = []
    for name, default in defaults.items():
        marks = getattr(hints[name], "__metadata__", ())
        if is_dataclass(default):
            without = next((mark for mark in marks if isinstance(mark, Without)), ())
            last.append(_options(type(default), vars(default), without))
        elif name not in hidden and (kind := kind_of(hints[name])):
            argument = next((mark for mark in marks if isinstance(mark, Argument)), "")
            told = next((mark for mark in marks if isinstance(mark, Help)), "")
            output = next((mark for mark in marks if isinstance(mark, Output)), None)
            also = next((mark for mark in marks if isinstance(mark, Also)), "")
            yield Option(name, kind, owner, default, argument, told, output, also)
    for options in last:
        yield from options


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
