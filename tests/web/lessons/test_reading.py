"""The lessons: every file is a whole lesson, all chapters are covered, and every widget leads to a view."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from chainrule import ops
from chainrule.errors import ConfigError
from chainrule.scalar import Expression
from chainrule.web.bundle import views
from chainrule.web.calculus import derivations
from chainrule.web.lessons import figures, reading

# Chapters of a course on transformers -> the lesson on each, and words it cannot do without.
CHAPTERS = {
    "linear algebra": ("vectors", ("dot product", "matrix", "rank", "norm", "cosine")),
    "calculus": ("chain-rule", ("chain rule", "gradient", "backward")),
    "derivatives": ("one-number", ("derivative", "tangent", "slope")),
    "probability": ("probability", ("entropy", "KL divergence", "variance", "conditional", "softmax")),
    "notation and shapes": ("vectors", ("shape", "batch")),
    "neural networks": ("network", ("neuron", "XOR", "ReLU", "sigmoid", "parameters")),
    "optimizers": ("descent", ("Momentum", "AdaGrad", "RMSprop", "Adam", "learning rate")),
    "initialization": ("initialization", ("Batch normalization", "dead", "saturates", "Kaiming")),
    "counting": ("counting", ("bigram", "maximum likelihood", "Smoothing")),
    "sequence modeling": ("recurrence", ("LSTM", "GRU", "vanish", "clip")),
    "subwords": ("tokens", ("Byte pair encoding", "WordPiece", "Unigram")),
    "embeddings": ("embeddings", ("one-hot", "skip-gram", "Negative sampling", "contextual")),
    "attention": ("attention", ("query", "key", "value", "softmax")),
    "self-attention": ("self-attention", ("causal mask", "residual", "Layer norm", "ReLU")),
    "multi-head attention": ("heads", ("Multi-head", "induction", "previous-token")),
    "positional encoding": ("positions", ("Learned positions", "Rotary", "rotation", "sine")),
    "the transformer": ("transformer", ("encoder", "decoder", "cross-attention", "BERT", "GPT")),
    "training objectives": (
        "objectives",
        ("perplexity", "Masked", "next sentence", "Label smoothing", "teacher"),
    ),
    "fine-tuning": ("tuning", ("LoRA", "Adapters", "Prefix", "forgetting", "Instruction")),
    "preferences": ("preferences", ("Bradley", "PPO", "DPO", "reward model", "KL")),
    "scaling laws": ("scaling", ("power law", "Chinchilla", "emerge", "floor", "interval")),
}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_is_covered(chapter: str) -> None:
    name, words = CHAPTERS[chapter]
    found = next(reading.FOLDER.glob(f"*/*-{name}.md")).read_text(encoding="utf-8").lower()
    assert [word for word in words if word.lower() not in found] == []


@pytest.mark.parametrize("name", reading.lessons())
def test_a_lesson_is_whole(name: str) -> None:
    lesson = reading.lesson(name)
    text = next(reading.FOLDER.glob(f"*/*-{name}.md")).read_text(encoding="utf-8")
    assert 300 <= len(text.split()) <= 620
    assert lesson.exercises and lesson.about and lesson.title
    kinds = [block["kind"] for block in lesson.blocks]
    assert "widget" in kinds and "exercise" in kinds
    for block in lesson.blocks:
        if block["kind"] == "widget":
            check_widget(block["path"])
        for part in block.get("parts", ()):
            if part["kind"] == "link":
                assert any(part["href"].startswith(view) for view in [*views()][1:])
    for derivation in lesson.derivations:
        assert derivation in derivations.names()


def check_widget(path: str) -> None:
    where, given = urlsplit(path), dict(parse_qsl(urlsplit(path).query))
    assert any(where.path == view or where.path.startswith(f"{view}/") for view in [*views()][1:]), path
    if where.path.startswith("/lessons/figures/"):
        assert figures.drawn(where.path.rpartition("/")[2], given)["title"]
    elif where.path.startswith("/calculus/ops/"):
        assert where.path.rpartition("/")[2] in ops.all_ops()
    elif where.path == "/calculus":
        assert set(Expression.read(given.pop("e")).variables) == set(given)


def test_the_path_is_in_order(ask: Any) -> None:
    listed = ask("/api/lessons")
    names = [each["name"] for each in listed]
    assert names[0] == "one-number" and names[-1] == "preferences" and len(names) == 20
    for i, name in enumerate(names):
        whole = ask(f"/api/lessons/{name}")
        assert whole["number"] == i + 1 and whole["of"] == len(names)
        assert (whole["before"] or {}).get("name") == (names[i - 1] if i else None)
        assert (whole["after"] or {}).get("name") == (names[i + 1] if i + 1 < len(names) else None)
        assert "answer" not in str(whole["blocks"][0].keys())
        exercises = [block for block in whole["blocks"] if block["kind"] == "exercise"]
        assert all(set(block) == {"kind", "number", "ask"} for block in exercises)  # the answers stay here


def test_an_unknown_lesson_is_named(ask: Any) -> None:
    assert "no such lesson" in ask("/api/lessons/atention", status=400)["error"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("1-a.md", "No heading.\n\nText.\n", "must begin with a heading"),
        ("1-a.md", "# A\n", "must begin with a heading and a paragraph"),
        ("1-a.md", "# A\n\nText.\n\n```more\nnothing\n```\n", "more has 'nothing'"),
        ("lesson.md", "# A\n\nText.\n", "must be named by a number"),
        ("1-a.md", "# A\n\nText.\n\n```exercise\nask: x\n```\n", "without a question or an answer"),
        ("1-a.md", "# A\n\nText.\n\n```exercise\nask: x\nreply: 3\n```\n", "exercise has 'reply: 3'"),
    ],
)
def test_what_a_teacher_may_get_wrong_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    folder = tmp_path / "1-part"
    folder.mkdir()
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        reading.Lesson.read(folder / name)


def test_derivations_are_on_the_page(ask: Any) -> None:
    assert ask("/api/derivations/softmax")[0]["kind"] == "heading"
    assert "no page" in ask("/api/derivations/nothing", status=400)["error"]


def test_an_edited_text_is_read_again(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "texts" / "1-part"
    folder.mkdir(parents=True)
    monkeypatch.setattr(reading, "FOLDER", folder.parent)
    (folder / "1-a.md").write_text("# First\n\nAbout it.\n", encoding="utf-8")
    assert ask("/api/lessons")[0]["title"] == "First"
    (folder / "1-a.md").write_text("# Second\n\nAbout it.\n", encoding="utf-8")
    os.utime(folder / "1-a.md", ns=(1, 1))
    assert ask("/api/lessons")[0]["title"] == "Second"
