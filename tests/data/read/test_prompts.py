"""Prompts are read from texts, from records and from files that also have answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainrule.data.read.prompts import load_prompts
from chainrule.errors import DataError

USER, ANSWER = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}


def jsonl(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_a_line_is_a_prompt_once(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("Why?\n\nWhen?\nWhy?\n", encoding="utf-8")
    assert load_prompts(tmp_path / "prompts.txt").prompts == ("Why?", "When?")


@pytest.mark.parametrize(
    ("record", "prompt"),
    [
        ({"prompt": "Why?"}, "Why?"),
        ({"instruction": "Say it.", "input": "Ja", "output": "Yes"}, "Say it.\n\nJa"),
        ({"messages": [USER, ANSWER]}, (USER,)),
        ({"messages": [USER]}, (USER,)),
        ({"chosen": [USER, ANSWER], "rejected": [USER, ANSWER]}, (USER,)),
        ({"prompt": "Why?", "chosen": "So.", "rejected": "No."}, "Why?"),
    ],
)
def test_records(tmp_path: Path, record: dict[str, Any], prompt: Any) -> None:
    assert load_prompts(jsonl(tmp_path, record)).prompts == (prompt,)


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ({"text": "Why?"}, "line 2: no field 'prompt'"),
        ({"messages": [ANSWER]}, "line 2: 'messages' holds an answer alone"),
    ],
)
def test_what_holds_no_prompt_is_refused_by_its_line(
    tmp_path: Path, record: dict[str, Any], error: str
) -> None:
    with pytest.raises(DataError) as raised:
        load_prompts(jsonl(tmp_path, {"prompt": "Why?"}, record))
    assert error in str(raised.value)
