"""The code of an op: its forward and backward, the helpers they call, and the tags of the equations in them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import chainrule
from chainrule.autograd import Op

NO_TAGS = re.compile(r"\s*(?:#\s*)?(?:\[[A-Z]+\.\d+\]\s*)+$")
TAG = re.compile(r"\[([A-Z]+\.\d+)\]")
PAGE = re.compile(r"docs/derivations/(\w+)\.md")
ROOT = Path(chainrule.__file__).parent


def page_of(op: Op) -> str:
    """The name of the page that derives an op, as its module says."""
    module = inspect.getmodule(op.forward)
    found = PAGE.search(getattr(module, "__doc__", None) or "")
    return found.group(1) if found else ""


def formula_of(op: Op) -> str:
    """What the module of an op says it computes."""
    doc = inspect.getdoc(inspect.getmodule(op.forward)) or ""
    return doc.partition("\n\n")[2].strip()


def code_of(op: Op) -> list[dict[str, Any]]:
    """Forward, backward and those of their helpers that compute an equation, each with its numbered lines."""
    found: dict[FunctionType, None] = {}
    for function in (op.forward, op.backward):
        _collect(function, found)
    shown = {function: _shown(function) for function in found}
    pair = (inspect.unwrap(op.forward), inspect.unwrap(op.backward))
    return [
        each for function, each in shown.items() if function in pair or any(l["tags"] for l in each["lines"])
    ]


def _collect(function: Any, found: dict[FunctionType, None]) -> None:
    function = inspect.unwrap(function) if callable(function) else None
    if not isinstance(function, FunctionType) or function in found:
        return
    if not function.__module__.startswith("chainrule.ops"):
        return
    found[function] = None
    for name in _names(function.__code__):
        _collect(function.__globals__.get(name, None), found)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _shown(function: FunctionType) -> dict[str, Any]:
    """Its lines without the docstring, which the page has said; the tags at their ends stand beside them."""
    lines, first = inspect.getsourcelines(function)
    file = Path(inspect.getsourcefile(function) or "").resolve()
    body = ast.parse(textwrap.dedent("".join(lines))).body[0]
    assert isinstance(body, ast.FunctionDef)
    told = body.body[0] if ast.get_docstring(body) is not None else None
    left_out = range(told.lineno, (told.end_lineno or 0) + 1) if told else range(0)
    return {
        "name": function.__name__,
        "file": file.relative_to(ROOT.resolve()).as_posix(),
        "first": first,
        "lines": [
            {"no": first + i - 1, "text": NO_TAGS.sub("", line.rstrip()), "tags": TAG.findall(line)}
            for i, line in enumerate(lines, 1)
            if i not in left_out
        ],
    }
