"""The walk of one token in docs/understand/architecture.md is what happens, function by function."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import chainrule
from chainrule.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "understand" / "architecture.md"
SOURCES = str(Path(chainrule.__file__).parent) + "/"
ANSWERS = "calls.py"  # what is between a caller and an op or an optimizer, to answer misuse


class Function(NamedTuple):
    """Where a function is, a file or a folder, and its name in the file."""

    file: str
    name: str


def walk() -> list[Function]:
    """The functions of the table, in its order."""
    text = (
        PAGE.read_text(encoding="utf-8").split("## One token, from file to checkpoint")[1].split("\n## ")[0]
    )
    rows = re.findall(r"^\| (`.*?) \| `(.*?)` \|", text, flags=re.MULTILINE)
    return [Function(file, name) for names, file in rows for name in re.findall(r"`([\w.]+)`", names)]


def called(frame: FrameType) -> Function:
    """The function of a frame; what is written inside a function in one line belongs to it."""
    name = re.sub(r"\.<locals>\.<\w+>", "", frame.f_code.co_qualname).replace("<locals>.", "")
    return Function(frame.f_code.co_filename.removeprefix(SOURCES), name)


def above(frame: FrameType | None) -> list[Function]:
    """The functions of the package that are at work when a function is called, itself included."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(SOURCES) and called(frame).file != ANSWERS:
            found.append(called(frame))
        frame = frame.f_back
    return found


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> list[Function]:
    """Functions of the table in the order in which each was first called by way of others of the table alone."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "book.txt").write_text("the quick brown fox jumps over the lazy dog. " * 40, encoding="utf-8")
    listed, found = walk(), dict[Function, None]()

    def known(function: Function) -> Function | None:
        same = (each for each in listed if each.name == function.name)
        return next((each for each in same if function.file.startswith(each.file)), None)

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            function = known(called(frame))
            if function and function not in found and all(map(known, above(frame))):
                found[function] = None

    sizes = "--n-layer 1 --n-head 1 --n-embd 8 --block-size 8 --batch-size 2 --max-steps 2 --save-every 1"
    words = ["train", "gpt", str(folder / "book.txt"), "--out", str(folder / "run"), *sizes.split()]
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        main(words)
    finally:
        sys.setprofile(before)
    return list(found)


def test_every_function_of_the_walk_is_reached_by_way_of_the_others_and_in_this_order(
    reached: list[Function],
) -> None:
    listed = list(dict.fromkeys(walk()))
    assert [each for each in listed if each not in reached] == []
    assert reached == listed
