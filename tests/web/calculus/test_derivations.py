"""The derivations as the page shows them: every formula becomes MathML, every page is there."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from chainrule.errors import ConfigError
from chainrule.web.calculus import derivations

ROOT = Path(__file__).parents[3]
PAGES = sorted(path.stem for path in (ROOT / "docs" / "derivations").glob("*.md") if path.stem != "index")


def formulas(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [value["math"]] if "math" in value else [m for each in value.values() for m in formulas(each)]
    return [m for each in value for m in formulas(each)] if isinstance(value, list) else []


@pytest.mark.parametrize("page", PAGES)
def test_every_formula_is_mathml(page: str) -> None:
    found = formulas(derivations.blocks_of(page))
    assert found or page == "order"
    for formula in found:
        ET.fromstring(formula)
        assert "\\" not in formula


@pytest.mark.parametrize("page", PAGES)
def test_every_equation_of_the_page_has_its_tag(page: str) -> None:
    text = (ROOT / "docs" / "derivations" / f"{page}.md").read_text(encoding="utf-8")
    tags = [
        block["tag"] for block in derivations.blocks_of(page) if block["kind"] == "equation" and block["tag"]
    ]
    assert len(tags) == text.count("**[") and len(set(tags)) == len(tags)
    assert set(tags) <= derivations.equations().keys()


def test_text_keeps_its_words_and_loses_its_marks() -> None:
    blocks = derivations.blocks_of("softmax")
    assert blocks[0] == {
        "kind": "heading", "level": 1, "parts": [{"kind": "text", "text": "Softmax and log-softmax"}],
    }  # fmt: skip
    texts = [part["text"] for block in blocks for part in block.get("parts", []) if part["kind"] == "text"]
    assert not any("$" in text or "**" in text or "`" in text for text in texts)


def test_a_page_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"no page '\.\./conf'"):
        derivations.blocks_of("../conf")


def test_an_installed_wheel_has_the_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install = (ROOT / "native" / "CMakeLists.txt").read_text(encoding="utf-8")
    assert "docs/derivations/ DESTINATION chainrule/web/derivations" in install
    (tmp_path / "index.md").touch()
    monkeypatch.setattr(derivations, "PACKAGED", tmp_path)
    assert derivations.folder() == tmp_path
    monkeypatch.setattr(derivations, "PACKAGED", tmp_path / "none")
    monkeypatch.setattr(derivations, "CHECKOUT", tmp_path / "none")
    with pytest.raises(ConfigError, match="derivations: not in this install"):
        derivations.folder()
