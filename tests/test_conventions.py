"""Conventions that hold for the whole package, read off its sources."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr

ROOT = Path(__file__).parents[1]
SOURCES = sorted(Path(cr.__file__).parent.rglob("*.py"))
MODULES = pkgutil.walk_packages(cr.ops.__path__, "chainrule.ops.")
OPS = [m.name for m in MODULES if not m.ispkg and "._" not in m.name]


@pytest.mark.requirement("R-469")
def test_sums_of_logs_instead_of_products() -> None:
    p = np.full(500, 0.001)
    assert p.prod() == 0.0
    total = cr.ops.cross_entropy_probs(np.stack([p, 1 - p], 1), targets=np.zeros(500, int), reduction="sum")
    assert -total == pytest.approx(-3453.877639491069, rel=1e-12)


@pytest.mark.requirement("R-509")
def test_logarithms_are_natural() -> None:
    """No log2 or log10 anywhere: another base is written out, as nats / ln 2 or a `base` argument."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            assert name not in ("log2", "log10"), f"{path.name}:{node.lineno} uses {name}"
    assert cr.foundations.information.entropy([0.5, 0.5]) == pytest.approx(math.log(2))
    assert cr.foundations.information.entropy([0.5, 0.5], base=2) == pytest.approx(1)


MOST_FILES = 18  # about fifteen: a folder of more is no longer seen at a glance


def test_a_folder_is_seen_at_a_glance_and_says_what_is_inside() -> None:
    for room in {path.parent for path in SOURCES}:
        files = [path for path in room.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= MOST_FILES, f"{room}: {len(files)} files (group some of them in a folder)"
        start = room / "__init__.py"
        told = start.exists() and ast.get_docstring(ast.parse(start.read_text(encoding="utf-8")))
        assert told, f"{room}: no __init__.py with a docstring (say in three lines what is inside)"


PAPER = r"[A-Z]\w+(?: et al\.| and [A-Z]\w+)?,? \(?(?:19|20)\d\d"


@pytest.mark.requirement("R-519")
@pytest.mark.parametrize("name", OPS)
def test_formulas_name_their_source(name: str) -> None:
    """An op names the page that derives it; the page names the paper its formulas come from, by author and year,
    or says that they are elementary."""
    doc = importlib.import_module(name).__doc__ or ""
    page = re.search(r"docs/derivations/\w+\.md", doc)
    assert page, f"{name} names no derivation"
    text = (ROOT / page.group()).read_text()
    assert re.search(rf"Sources?: (?:elementary|.*{PAPER})", text), f"{page.group()} names no source"


PAGES = [p for p in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "_generated"} & set(p.parts)]


def test_sources_and_pages_carry_no_requirement_numbers() -> None:
    """Requirements live in the marks of the tests that settle them, and on one page of the docs."""
    number = re.compile(r"\bR-\d{3}\b|\b[CE]-\d{2,3}\b|\bseed 00\d\b", re.IGNORECASE)
    for path in {*SOURCES, *PAGES} - {ROOT / "docs" / "reference" / "requirements.md"}:
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not (found := number.search(text)), f"{path.name}:{line} names {found.group()}"


SHAPE = re.compile(r"\((?:\.\.\.|[A-Z]\w*)[^()]*\)")


@pytest.mark.requirement("R-517")
def test_layers_and_models_document_their_shapes() -> None:
    """Arrays in, arrays out, with shapes such as (B, T, C) in the docstring of every forward."""
    for room in (cr.nn, cr.models):
        for name, layer in inspect.getmembers(room, inspect.isclass):
            forward = vars(layer).get("forward")
            if isinstance(layer, type) and issubclass(layer, cr.nn.Layer) and inspect.isfunction(forward):
                assert SHAPE.search(forward.__doc__ or ""), f"{name}.forward does not say its shapes"
    rows = np.ones((2, 3), np.float32)
    assert isinstance(cr.ops.softmax(rows), np.ndarray)


FORMULAS = ("foundations", "scaling.laws", "align.advantages", "nn.positions")
ARRAYS = re.compile(r"ArrayLike|Array\b|Floats|Rows|Mask\b")


def formulas() -> dict[str, object]:
    """Every op, and every public function of arrays in the rooms of formulas"""
    found: dict[str, object] = {**cr.ops.all_ops(), **cr.ops.compositions()}
    for room in FORMULAS:
        module = importlib.import_module(f"chainrule.{room}")
        inside = pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}.")
        names = [each.name for each in inside if "._" not in each.name]
        for part in [module, *map(importlib.import_module, names)]:
            for name, function in inspect.getmembers(part, inspect.isfunction):
                public = not name.startswith("_") and function.__module__ == part.__name__
                if public and ARRAYS.search(str(inspect.signature(function))):
                    found[f"{part.__name__}.{name}"] = function
    return found


@pytest.mark.requirement("R-515")
def test_every_public_formula_says_its_shapes() -> None:
    found = formulas()
    assert len(found) > 180
    lacking = [name for name, formula in found.items() if not says_shapes(formula.__doc__ or "")]
    assert not lacking, "docstrings without shapes such as x (..., C) -> (..., C)"


def says_shapes(doc: str) -> bool:
    """Whether it has a shape: (...), (), (n,), (B, T, C)"""
    return bool(re.search(r"(?:^|[\s:])\((?:\.\.\.|[^()]*,[^()]*)?\)", doc))


def test_a_docstring_without_shapes_is_found() -> None:
    assert says_shapes("x (..., C) -> (..., C)") and says_shapes("u (n,), v (n,) -> ()")
    assert not says_shapes("y = ln(1 + x), exact for small x (and large ones)")


@pytest.mark.requirement("R-508", declared="docs/reference/notation.md")
def test_formulas_are_written_as_the_page_of_notation_says() -> None:
    """Its list is whole; the pages introduce what they derive with its set, and the code of layers says its shapes."""
    page = (ROOT / "docs" / "reference" / "notation.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z][^|]+?) \|", page, re.M)[1:]
    needed = ("scalar", "vector", "matrix", "set, distribution", "random variable", "logarithm", "batch")
    assert not set(needed) - set(rows)
    for path in sorted((ROOT / "docs" / "derivations").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for name, sizes in re.findall(r"\$([A-Za-z])(?:_\w+)? \\in \\mathbb\{R\}\^\{?([^$]+)\$", text):
            matrix = "\\times" in sizes
            assert matrix or name.islower() or name in "XYZ", f"{path.name}: a vector is called {name}"
    for module in OPS:
        if ".neural." in module:
            source = inspect.getsource(importlib.import_module(module))
            assert re.search(r"#.*\((?:\.\.\.|\w+)[^()]*,[^()]*\)|\(\.\.\.\)", source), (
                f"{module}: no shapes in its code"
            )
