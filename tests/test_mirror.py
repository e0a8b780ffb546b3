"""Tests mirror sources: the tests of src/chainrule/ROOM/x.py are in tests/ROOM/test_x.py, and the other way round.

A test file may stand for a folder: tests/models/test_bert.py for src/chainrule/models/bert/. Exceptions are in
tests/mirror.toml: [themes] are test files named after what they show rather than after one source, [tested_in] says for
a source without tests of its name where it is tested.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "chainrule"
APART = {"battery", "benchmarks", "conformance", "peers"}  # of all ops, of no source, against other programs
SMALL = 60  # lines: shorter files may be tested with those that use them
LISTED = tomllib.loads((ROOT / "tests" / "mirror.toml").read_text(encoding="utf-8"))
THEMES, TESTED_IN = LISTED["themes"], LISTED["tested_in"]


def places(top: Path, pattern: str) -> dict[str, Path]:
    """Files below `top` by their place: nn/norm for nn/norm.py and for nn/test_norm.py."""
    paths = sorted(path for path in top.rglob(pattern) if path.name != "__init__.py")
    return {
        path.relative_to(top).with_name(path.stem.removeprefix("test_")).as_posix(): path for path in paths
    }


TESTS = {
    place: path
    for place, path in places(ROOT / "tests", "test_*.py").items()
    if place.split("/")[0] not in APART
}
FILES = places(SOURCES, "*.py")


def has_source(place: str) -> bool:
    """There is a source file or folder of this place; for tests/kernels/ROOM/test_x.py, native/ROOM/x or x.cpp."""
    room, _, name = place.rpartition("/")
    if place.startswith("kernels/"):
        return any((ROOT / "native" / room.removeprefix("kernels/")).glob(f"{name}*"))
    parts = name.split("_")
    shorter = {"_".join(parts[: n + 1]) for n in range(len(parts))}  # test_x_more.py is about x too
    known = any(f"{room}/{name}".lstrip("/") in FILES or (SOURCES / room / name).is_dir() for name in shorter)
    return known or Path(room).name == name  # data/test_data.py stands for its folder


def named_after(place: str) -> list[str]:
    """The test files of a source file by their names: its own, and those of the folders it lies in."""
    folders = [parent.as_posix() for parent in Path(place).parents if parent.parent != Path(".")]
    names = {place, *folders, *(f"{folder}/{Path(folder).name}" for folder in folders)}
    return [test for test in TESTS if test in names or test.startswith(f"{place}_")]


@pytest.mark.parametrize("place", TESTS)
def test_a_test_file_is_named_after_its_source_or_is_a_theme(place: str) -> None:
    assert has_source(place) != (place in THEMES), (
        f"tests/{place}: name it after a file of src/chainrule, or list it under [themes] of mirror.toml (not both)"
    )


def test_every_source_file_is_tested_where_one_looks_for_it() -> None:
    missing = []
    for place, path in FILES.items():
        listed = any(fnmatchcase(place, pattern) for pattern in TESTED_IN)
        short = len(path.read_text(encoding="utf-8").splitlines()) < SMALL
        if not (short or listed or named_after(place)):
            missing.append(place)
    assert missing == [], "no tests of this name (write or move them, or say in mirror.toml where they are)"


@pytest.mark.parametrize("pattern", TESTED_IN)
def test_the_list_of_exceptions_is_up_to_date(pattern: str) -> None:
    assert any(fnmatchcase(place, pattern) for place in FILES), f"no src/chainrule/{pattern}.py"
    assert pattern not in TESTS, f"{pattern} has a test file of its own: remove it from mirror.toml"
    assert (ROOT / "tests" / TESTED_IN[pattern]).exists(), f"{TESTED_IN[pattern]} is not there"


def test_every_theme_is_a_test_file() -> None:
    assert sorted(THEMES.keys() - TESTS.keys()) == []
