from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.columns import Columns
from chainrule.errors import ConfigError
from chainrule.models import make
from chainrule.tasks.tuning import has_conversations, tuning_task
from tests.models.tuning.families import SIZES


def model(family: str) -> object:
    sizes = {
        name: value
        for name, value in SIZES.get(family, SIZES["bert-classifier"]).items()
        if name != "classes"
    }
    return make(family, **sizes, vocab_size=11)


@pytest.mark.parametrize(
    ("family", "asked", "found"),
    [
        ("gpt", "", ("gpt", "")),
        ("gpt", "language-modeling", ("gpt", "")),
        ("seq2seq", "", ("seq2seq", "")),
        ("t5", "translation", ("t5", "")),
        ("bert", "", ("bert-classifier", "")),
        ("bert-body", "", ("bert-classifier", "")),
        ("bert", "masked-lm", ("bert", "")),
        ("bert", "tagging", ("bert-tagger", "")),
        ("bert-embedder", "", ("bert-embedder", "")),
        ("bert-embedder", "classification", ("bert-classifier", "")),
    ],
)
def test_the_task_that_fits_base_and_data(family: str, asked: str, found: tuple[str, str]) -> None:
    assert tuning_task(model(family), "text.txt", asked) == found  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("family", "asked"), [("gpt", "tagging"), ("bert", "translation"), ("t5", "masked-lm")]
)
def test_a_task_of_another_family_is_refused(family: str, asked: str) -> None:
    with pytest.raises(ConfigError, match=rf"tune: task is {asked} for a \w+ \(must be "):
        tuning_task(model(family), "text.txt", asked)  # type: ignore[arg-type]


def test_instructions_are_known_by_their_fields(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    for record, expected in (
        ({"messages": []}, True),
        ({"instruction": "a", "output": "b"}, True),
        ({"conversations": []}, True),
        ({"question": "a", "answer": "b"}, True),
        ({"prompt": "a", "response": "b"}, True),
        ({"text": "a"}, False),
    ):
        path.write_text(json.dumps(record) + "\n", encoding="utf-8")
        assert has_conversations(str(path)) == expected
    (tmp_path / "list.json").write_text(json.dumps([{"instruction": "a"}]), encoding="utf-8")
    assert has_conversations(str(tmp_path / "list.json"))
    assert not any(has_conversations(str(tmp_path / name)) for name in ("none.json", "text.txt"))
    path.write_text('{"prompt": "a"}\n', encoding="utf-8")
    assert not has_conversations(str(path), Columns(text_column=("prompt",)))


def test_a_reward_model_learns_preferences() -> None:
    model = make("gpt-reward", **SIZES["gpt"], vocab_size=11)
    assert tuning_task(model, "preferences.jsonl") == ("gpt-reward", "")
    with pytest.raises(ConfigError, match="a reward model learns preferences"):
        tuning_task(model, "preferences.jsonl", "instruction")
