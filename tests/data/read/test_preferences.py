"""Preferences are read in all their layouts; what is no comparison is refused by its line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from chainrule.data import load_preferences
from chainrule.errors import DataError

USER = {"role": "user", "content": "Why?"}


def said(answer: str) -> dict[str, str]:
    return {"role": "assistant", "content": answer}


def jsonl(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "preferences.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.requirement("R-410")
@pytest.mark.parametrize(
    ("record", "prompt"),
    [
        ({"prompt": "Why?", "chosen": "So.", "rejected": "No."}, "Why?"),
        ({"prompt": [USER], "chosen": "So.", "rejected": "No."}, (USER,)),
        ({"prompt": [USER], "chosen": [said("So.")], "rejected": [said("No.")]}, (USER,)),
        ({"chosen": [USER, said("So.")], "rejected": [USER, said("No.")]}, (USER,)),
        ({"prompt": "Why?", "chosen": [USER, said("So.")], "rejected": [USER, said("No.")]}, (USER,)),
        (
            {"instruction": "Translate.", "input": "Ja", "output": "", "chosen": "So.", "rejected": "No."},
            "Translate.\n\nJa",
        ),
        ({"instruction": "Ask.", "input": "", "chosen": "So.", "rejected": "No."}, "Ask."),
    ],
    ids=["texts", "messages", "answers", "conversations", "both", "instruction", "no input"],
)
def test_layouts(tmp_path: Path, record: dict[str, Any], prompt: Any) -> None:
    path = jsonl(tmp_path, record)
    assert load_preferences(path).comparisons == ((prompt, "So.", "No.", 1, ()),)
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps([record], indent=2), encoding="utf-8")
    assert load_preferences(listed).comparisons == ((prompt, "So.", "No.", 2, ()),)
    assert load_preferences(listed).sha256 == load_preferences(path).sha256


def test_a_table(tmp_path: Path) -> None:
    path = tmp_path / "preferences.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["prompt", "chosen", "rejected"], ["Why, then?", "So.", "No."]])
    assert load_preferences(path).comparisons == (("Why, then?", "So.", "No.", 2, ()),)


@pytest.mark.parametrize(
    ("said", "cut"), [("chosen", ("chosen",)), ("both", ("chosen", "rejected")), ("", ()), (None, ())]
)
def test_answers_that_were_cut(tmp_path: Path, said: Any, cut: tuple[str, ...]) -> None:
    record = {"prompt": "Why?", "chosen": "So.", "rejected": "No."}
    whole = load_preferences(jsonl(tmp_path, record))
    found = load_preferences(jsonl(tmp_path, record | {"cut": said}))
    assert found.comparisons[0].cut == cut
    assert (found.sha256 == whole.sha256) is (not cut)


def test_the_same_words_are_no_tie_if_one_was_cut(tmp_path: Path) -> None:
    record = {"prompt": "Why?", "chosen": "So", "rejected": "So", "cut": "rejected"}
    assert len(load_preferences(jsonl(tmp_path, record)).without_ties()) == 1


@pytest.mark.requirement("R-410")
@pytest.mark.parametrize(
    ("record", "error"),
    [
        ({"prompt": "Why?", "chosen": "So."}, "line 2: 'rejected' is missing"),
        ({"prompt": "Why?", "chosen": "", "rejected": "No."}, "line 2: 'chosen' is empty"),
        ({"chosen": "So.", "rejected": "No."}, "line 2: no field 'prompt' or 'instruction'"),
        ({"prompt": "", "chosen": "So.", "rejected": "No."}, "line 2: 'prompt' is empty"),
        ({"prompt": 3, "chosen": "So.", "rejected": "No."}, "line 2: 'prompt' is a int"),
        ({"prompt": "Why?", "chosen": 3, "rejected": "No."}, "line 2: 'chosen' is a int"),
        ({"chosen": [USER], "rejected": [said("No.")]}, "line 2: 'chosen' ends with"),
        (
            {"chosen": [USER, said("So.")], "rejected": [said("No.")]},
            "line 2: chosen and rejected answer different conversations",
        ),
        (
            {"prompt": "Why?", "chosen": "So.", "rejected": "No.", "cut": "yes"},
            "line 2: 'cut' is 'yes' (must be chosen, rejected or both",
        ),
        ({"prompt": ["Why?"], "chosen": "So.", "rejected": "No."}, "line 2: 'prompt', message 0: a str"),
    ],
)
def test_what_is_no_comparison_is_refused_by_its_line(
    tmp_path: Path, record: dict[str, Any], error: str
) -> None:
    good = {"prompt": "Why?", "chosen": "So.", "rejected": "No."}
    with pytest.raises(DataError) as raised:
        load_preferences(jsonl(tmp_path, good, record))
    assert error in str(raised.value)


@pytest.mark.requirement("R-410")
def test_a_winner_that_is_the_loser_is_refused_or_left_out_on_request(tmp_path: Path) -> None:
    good, tie = ({"prompt": "Why?", "chosen": "So.", "rejected": answer} for answer in ("No.", "So."))
    corpus = load_preferences(jsonl(tmp_path, good, tie, good, tie))
    with pytest.raises(DataError, match=r"line 2, 4: chosen and rejected are the same \(must differ; leave"):
        corpus.without_ties()
    assert [c.line for c in corpus.without_ties(skip=True)] == [1, 3]
