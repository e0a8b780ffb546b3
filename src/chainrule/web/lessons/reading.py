"""The texts of the lessons as blocks for the page.

A lesson is a Markdown file in texts/NUMBER-PART/NUMBER-NAME.md: a heading, a paragraph that says what it is about, and
then text with formulas ($...$), lists, tables and links into the Studio ([words](/tokens)). Three fences mean more:

    ```widget             a view of the Studio, live; a second line is its caption
    ```exercise           ask, answer, and perhaps within, hint and why; see exercises.py
    ```more               derivations: names of docs/derivations to read on
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chainrule.errors import ConfigError
from chainrule.suggest import hinted
from chainrule.web.calculus import derivations
from chainrule.web.calculus.derivations import Block
from chainrule.web.lessons.exercises import Exercise

FOLDER = Path(__file__).parent / "texts"
FILE = re.compile(r"\d+-(?P<name>[a-z-]+)")


@dataclass(frozen=True)
class Lesson:
    """One lesson."""

    name: str
    part: str
    title: str
    about: str
    blocks: tuple[Block, ...]
    exercises: tuple[Exercise, ...]
    derivations: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Lesson:
        """A lesson from its file."""
        found = derivations.blocks(path.read_text(encoding="utf-8"))
        if len(found) < 2:
            raise ConfigError(f"{path}: must begin with a heading and a paragraph about it")
        heading, about, *rest = found
        if heading["kind"] != "heading" or about["kind"] != "paragraph":
            raise ConfigError(f"{path}: must begin with a heading and a paragraph about it")
        blocks: list[Block] = []
        exercises: list[Exercise] = []
        further: tuple[str, ...] = ()
        for block in rest:
            info = block.get("info", "")
            if info == "widget":
                address, _, caption = block["text"].partition("\n")
                blocks.append({"kind": "widget", "path": address, "caption": derivations.inline(caption)})
            elif info == "exercise":
                blocks.append({"kind": "exercise", "number": len(exercises)})
                exercises.append(Exercise.read(block["text"], path))
                blocks[-1]["ask"] = derivations.inline(exercises[-1].ask)
            elif info == "more":
                name, _, names = block["text"].strip().partition(": ")
                if name != "derivations" or not names:
                    raise ConfigError(
                        f"{path}: more has {block['text'][:60]!r} (must be one line: derivations: NAME, NAME)"
                    )
                further = tuple(names.split(", "))
            else:
                blocks.append(block)
        words, part = _words(heading), _named(path.parent)
        return cls(_named(path), part, words, _words(about), tuple(blocks), tuple(exercises), further)

    def line(self) -> dict[str, Any]:
        """For the list of lessons."""
        return {
            "name": self.name,
            "part": self.part,
            "title": self.title,
            "about": self.about,
            "exercises": len(self.exercises),
        }


@lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> Lesson:
    return Lesson.read(path)


def lessons() -> dict[str, Lesson]:
    """All lessons by name, in the order of the path; a file that was edited is read again."""
    found = [_read(path, path.stat().st_mtime_ns) for path in sorted(FOLDER.glob("*/*.md"))]
    return {lesson.name: lesson for lesson in found}


def lesson(name: str) -> Lesson:
    """One of them."""
    if name not in lessons():
        rule = hinted("see the list of lessons", name[:80], lessons())
        raise ConfigError(f"lesson {name[:80]!r}: no such lesson ({rule})")
    return lessons()[name]


def whole(name: str) -> dict[str, Any]:
    """A lesson for the page, with its neighbors on the path."""
    found, path = lesson(name), list(lessons().values())
    at = path.index(found)
    return found.line() | {
        "number": at + 1,
        "of": len(path),
        "blocks": found.blocks,
        "derivations": found.derivations,
        "before": path[at - 1].line() if at else None,
        "after": path[at + 1].line() if at + 1 < len(path) else None,
    }


def _named(path: Path) -> str:
    match = FILE.fullmatch(path.stem)
    if not match:
        raise ConfigError(f"{path}: must be named by a number and a word, such as 3-vectors")
    return match.group("name")


def _words(block: Block) -> str:
    return "".join(part.get("text", "") for part in block["parts"])
