"""Which tests of the sources are marked with a requirement, and whether they assert anything.

    @pytest.mark.requirement("R-083", "R-361")
    @pytest.mark.requirement("R-134", declared="docs/guide/training.md")   # settled by a sentence of this page

Read from the sources, not from a run: a test that was left out of a run is found here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mark:
    test: str  # path::class::function, without the parameters
    requirements: tuple[str, ...]
    declared: str = ""  # the page of the docs that settles them
    asserts: bool = True


def scan(root: Path) -> list[Mark]:
    """Every marked test below root/tests."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return [mark for path in files for mark in scan_file(path, path.relative_to(root).as_posix())]


def scan_file(path: Path, name: str) -> Iterator[Mark]:
    text = path.read_text(encoding="utf-8")
    if "requirement" not in text:
        return
    tree = ast.parse(text)
    helpers = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    whole_file = [
        node for node in tree.body if isinstance(node, ast.Assign) and _name(node.targets[0]) == "pytestmark"
    ]
    yield from _tests(tree, name, whole_file, helpers)


def _tests(
    scope: ast.Module | ast.ClassDef, name: str, inherited: list[ast.AST], helpers: dict[str, Function]
) -> Iterator[Mark]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from _tests(node, f"{name}::{node.name}", inherited + node.decorator_list, helpers)
        elif isinstance(node, Function) and node.name.startswith("test"):
            asserts = has_assertion(node, helpers)
            for ids, declared in _marks(inherited + node.decorator_list):
                yield Mark(f"{name}::{node.name}", ids, declared, asserts)


def _marks(decorators: list[ast.AST]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The requirement marks in decorators, those of single parameters included."""
    for call in (node for top in decorators for node in ast.walk(top)):
        if isinstance(call, ast.Call) and _name(call.func) == "requirement":
            pages = [ast.literal_eval(k.value) for k in call.keywords if k.arg == "declared"]
            yield tuple(ast.literal_eval(arg) for arg in call.args), "".join(pages)


def has_assertion(test: Function, helpers: dict[str, Function]) -> bool:
    """Whether a test can fail by what it finds: itself, or by a helper of its own file that it calls."""
    seen: set[str] = set()
    open_ = [test]
    while open_:
        function = open_.pop()
        seen.add(function.name)
        for node in (node for statement in function.body for node in ast.walk(statement)):
            called = _name(node.func) if isinstance(node, ast.Call) else ""
            if called in helpers:  # judged by its body, whatever its name
                open_ += [helpers[called]] if called not in seen else []
            elif _asserts(node, called):
                return True
    return False


def _asserts(node: ast.AST, called: str) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    return called in ("raises", "check") or called.startswith(("assert_", "check_", "gradcheck"))


def _name(node: ast.AST) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
