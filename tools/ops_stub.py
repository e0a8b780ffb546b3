"""Write src/chainrule/ops/__init__.pyi, what type checkers and editors know of the ops: python -m tools.ops_stub

Each op and each function made of ops has two entries, both read off its own signature: arrays in, arrays out; and as
soon as one operand is a Tensor, Tensors out. Ops that are called alike share them, by the names of `SHARED`.
tests/ops/test_stub.py fails if the file is not what this writes.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import chainrule as cr
from chainrule.autograd.types import Array

STUB = Path(__file__).parents[1] / "src" / "chainrule" / "ops" / "__init__.pyi"

SHARED = {
    "abs": "Unary",
    "add": "Binary",
    "max": "Reduction",
}  # by the first of the ops that are called alike

HEAD = '''"""Written by tools/ops_stub.py from the signatures of the ops: do not edit."""
# An array is an operand too, but gives an array.
# mypy: disable-error-code="overload-overlap"

import collections.abc
import typing
from typing import Any, Protocol, TypeAlias, overload

import numpy as np

from chainrule.autograd.op import Op
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array
from chainrule.ops._composition import Composition

Data: TypeAlias = Array | np.generic | float | list[Any] | tuple[Any, ...]
Operand: TypeAlias = Tensor | Data

'''


def stub() -> str:
    """The text of the file."""
    public = {name: getattr(cr.ops, name) for name in sorted(cr.ops.__all__)}
    plain = {name: value for name, value in public.items() if inspect.isfunction(value)}
    own = {name for name, value in plain.items() if value.__module__ == "chainrule.ops"}
    lines = [
        f"from {value.__module__} import {value.__name__} as {name}"
        for name, value in plain.items()
        if name not in own
    ]
    text = HEAD + "\n".join(sorted(lines)) + "\n\n"
    text += "".join(f"def {name}{_plain(plain[name])}: ...\n" for name in sorted(own))
    kinds: dict[str, list[str]] = {}
    for name, value in public.items():
        if name not in plain:
            kinds.setdefault(_kind(inspect.signature(value)), []).append(name)
    for names in (names for names in kinds.values() if names[0] in SHARED):
        entries = _entries("__call__", inspect.signature(public[names[0]])).replace(
            "__call__(", "__call__(self, "
        )
        text += (
            f"\nclass {SHARED[names[0]]}(Protocol):\n{re.sub('^', '    ', entries.rstrip(), flags=re.M)}\n\n"
        )
    for names in kinds.values():
        for name in names:
            alone = _entries(name, inspect.signature(public[name]))
            text += f"{name}: {SHARED[names[0]]}\n" if names[0] in SHARED else alone
    return text


def _plain(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def _kind(signature: inspect.Signature) -> str:
    """The entries without the names of operands by position, which are no part of a call."""
    taken = enumerate(signature.parameters.values())
    bare = [p.replace(name=f"x{i}") if p.kind is p.POSITIONAL_ONLY else p for i, p in taken]
    return _entries("", signature.replace(parameters=bare))


def _entries(name: str, signature: inspect.Signature) -> str:
    arrays, tensors = (_call(signature, kind) for kind in ("Data", "Operand"))
    back = _shown(signature.return_annotation)
    return (
        f"@overload\ndef {name}({arrays}) -> {back.replace('Tensor', 'Array')}: ...\n"
        f"@overload\ndef {name}({tensors}) -> {back}: ...\n"
    )


def _call(signature: inspect.Signature, operand: str) -> str:
    taken = list(signature.parameters.values())
    by_name = [p for p in taken if p.kind is p.KEYWORD_ONLY]
    parts = [_parameter(p, operand) for p in taken if p not in by_name]
    only = [p for p in taken if p.kind is p.POSITIONAL_ONLY]
    parts[len(only) : len(only)] = ["/"] * bool(only)
    if by_name:
        parts += [] if any(p.kind is p.VAR_POSITIONAL for p in taken) else ["*"]
        parts += [_parameter(p, operand) for p in by_name]
        parts += [f"dim: {_shown(p.annotation)} = ..." for p in by_name if p.name == "axis"]
    return ", ".join(parts)


def _parameter(p: inspect.Parameter, operand: str) -> str:
    star = "*" if p.kind is p.VAR_POSITIONAL else ""
    default = "" if p.default is p.empty else f" = {p.default!r}"
    return f"{star}{p.name}: {_shown(p.annotation).replace('Tensor', operand)}{default}"


def _shown(annotation: Any) -> str:
    text = inspect.formatannotation(annotation)
    text = text.replace(inspect.formatannotation(Array), "Array").replace("chainrule.autograd.tensor.", "")
    return text.replace("typing.Any", "Any").replace("numpy.", "np.")


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
