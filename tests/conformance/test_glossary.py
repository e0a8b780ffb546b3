"""Every word of the seeds' glossary has its line in ours: what it is, a name of the code, perhaps a page."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "glossary.md"
WORDS = (Path(__file__).parent / "glossary.txt").read_text(encoding="utf-8").splitlines()
LINE = re.compile(r"\| (.+?) \| (.+?) \| `(.+?)` \| (?:\[.+?\]\((.+?)\))? \|")
LINES = {match[1]: match for match in LINE.finditer(PAGE.read_text(encoding="utf-8"))}


@pytest.mark.requirement("R-518")
def test_every_word_is_in_the_glossary() -> None:
    assert len(WORDS) == 80 and list(LINES) == WORDS


@pytest.mark.requirement("R-518")
@pytest.mark.parametrize("word", WORDS)
def test_a_word_leads_to_code_and_pages_that_are_there(word: str) -> None:
    _, meaning, code, page = LINES[word].groups()
    assert len(meaning) > 10 and resolve(code) is not None
    assert page is None or (PAGE.parent / page).resolve().is_file()


def resolve(name: str) -> object:
    """What a dotted name of the package stands for: the longest module, then its attributes"""
    parts = name.split(".")
    for cut in range(len(parts), -1, -1):
        try:
            module = importlib.import_module(".".join(["chainrule", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        return reduce(attribute, parts[cut:], module)
    raise AssertionError(name)


def attribute(owner: object, name: str) -> object:
    """An attribute; of a dataclass also a field"""
    return vars(owner).get("__dataclass_fields__", {}).get(name) or getattr(owner, name)
