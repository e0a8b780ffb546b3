"""Data cards: one for every corpus with a name, and the page of the docs says the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tools.data_cards import PAGE, page

import chainrule as cr
from chainrule.cli import main
from chainrule.data.downloads import NAMED
from chainrule.errors import DataError


@pytest.mark.requirement("R-520")
def test_every_corpus_with_a_name_has_a_card_that_says_all() -> None:
    assert set(cr.data.CARDS) == {*cr.data.BUILT_IN, *NAMED}
    for name, card in cr.data.CARDS.items():
        assert card.name == name and min(map(len, (card.origin, card.license, card.limits))) > 2
        if name in NAMED:
            assert (card.origin, card.sha256, card.bytes) == (
                NAMED[name].url,
                NAMED[name].sha256,
                NAMED[name].bytes,
            )


@pytest.mark.requirement("R-520")
def test_the_page_lists_the_origin_and_license_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tools.data_cards"
    for card in cr.data.CARDS.values():
        for said in (f"## {card.name}\n", f"- License: {card.license}\n", f"- Limits: {card.limits}\n"):
            assert said in page()
        assert card.origin in page()


def test_the_hash_of_a_built_in_corpus_is_that_of_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "card", "pydoc", "--json"])
    found = json.loads(capsys.readouterr().out)
    text = cr.data.load("pydoc").text.encode()
    assert found["sha256"] == hashlib.sha256(text).hexdigest() and found["bytes"] == len(text)
    assert "CPython 3" in found["origin"] and found["license"] == "PSF-2.0"
    main(["data", "card", "names"])
    assert "MIT" in capsys.readouterr().out


def test_a_corpus_without_a_card_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["data", "card", "nams"])
    said = capsys.readouterr().err
    assert (
        stop.value.code == 2 and "corpus 'nams': no such corpus (" in said and "did you mean names?" in said
    )


def test_a_file_of_the_data_folder_has_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.txt").write_text("a text")
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="corpus 'mine': has no data card"):
        cr.data.card("mine")
