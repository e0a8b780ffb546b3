"""The fields of a model's config as options of a command: names, types, defaults, and the help in its source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import field, fields, is_dataclass
from itertools import pairwise
from typing import Annotated, Any, get_args, get_type_hints

from chainrule.models import family as family_of
from chainrule.tasks.registry import material_of


def sizes_of(family: str) -> list[str]:
    """The fields of a family's config that have a flag but for those that the data decide."""
    decided = material_of(family).decides
    return [name for name in plain_fields(family_of(family).config) if name not in decided]


def plain_fields(config: type[Any]) -> list[str]:
    """The fields of a config that are numbers, words or switches; others, such as `rope_scaling`, have no flag."""
    types = get_type_hints(config)
    return [f.name for f in fields(config) if not any(map(is_dataclass, get_args(types[f.name])))]


def size_fields(config: type[Any], names: Sequence[str]) -> list[Any]:
    """Fields of a config as `make_dataclass` takes them, each a flag with its help."""
    types, about = get_type_hints(config), documented(config)
    default = {f.name: f.default for f in fields(config)}
    return [
        (name, Annotated[types[name], tyro.conf.arg(help=about.get(name))], field(default=default[name]))
        for name in names
    ]


def documented(config: type[Any]) -> dict[str, str]:
    """The strings below the fields of a dataclass, as in its source."""
    found = {}
    for cls in reversed([c for c in config.__mro__ if is_dataclass(c)]):
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        for pair in pairwise(node.body if isinstance(node, ast.ClassDef) else ()):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found
