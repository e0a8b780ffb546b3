"""Where predictions come from, and two models side by side: the numbers of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from tests.web.families import SENTENCE, SIZES, ran

OTHER = "the brown"


@pytest.mark.parametrize("family", [*SIZES, "seq2seq"])
def test_gradients_and_terms(get: Any, family: str) -> None:
    seen = get("view", run=family, text=SENTENCE)
    at, token = len(seen["tokens"]) - 1, seen["top"][-1][0]["id"]
    found = get("causes", run=family, text=SENTENCE, token=token, at=at)
    names, _ = ran(seen["python"])
    model, ids = names["model"], names["ids"]
    assert found["logit"] == float(names["seen"].logits[at, token])
    if family in ("ngram", "mlp"):
        assert found["gradient"]["text"] is None and ran(found["python"])
    else:
        expected = cr.inspect.input_gradient(model, ids, token, position=at)
        assert found["gradient"]["text"] == expected.scores.tolist()
        assert str(expected.scores.tolist()) in ran(found["python"])[1]
    assert ("source" in found["gradient"]) is (family == "seq2seq")
    if found["terms"] is not None:
        assert sum(term["value"] for term in found["terms"]) == pytest.approx(found["logit"], abs=1e-4)
    assert (found["terms"] is not None) or family not in ("gpt", "llama", "neox", "seq2seq")


def test_without_each_head(get: Any, families: Path) -> None:
    model, tokenizer = cr.load(families / "gpt")
    expected = cr.inspect.ablation(model, cr.text.prompt_ids(tokenizer, SENTENCE))
    assert get("ablation", run="gpt", text=SENTENCE)["kl"] == expected.kl.tolist()
    assert len(get("ablation", run="seq2seq", text="the fox", cross=True)["kl"]) == 2


def test_every_place_is_patched(get: Any, families: Path) -> None:
    model, tokenizer = cr.load(families / "gpt")
    clean, other = (cr.text.prompt_ids(tokenizer, text) for text in (SENTENCE, OTHER))
    found = get("patching", run="gpt", text=SENTENCE, other=OTHER, right=3, wrong=5, part="mlp")
    assert found["recovered"] == cr.inspect.patching(model, clean, other, 3, 5, part="mlp").recovered.tolist()
    assert str(found["recovered"]) in ran(found["python"])[1]


def test_two_checkpoints(get: Any, families: Path) -> None:
    folder = cr.runs.RunFolder(families / "gpt")
    found = get("compare", run="gpt", text=SENTENCE, against="gpt", against_step=2)
    a, b = cr.load(families / "gpt"), cr.load(folder.checkpoint(2))
    expected = cr.inspect.compare(a[0], b[0], cr.text.prompt_ids(a[1], SENTENCE))
    assert found["kl"] == expected.kl.tolist() and max(found["kl"]) > 0
    assert [(e["block"], e["head"], e["distance"]) for e in found["moved"]] == expected.moved_heads(8)
    assert str(found["kl"]) in ran(found["python"])[1]


@pytest.mark.parametrize(
    ("part", "params", "said"),
    [
        ("causes", {"token": 999, "at": 0}, "token 999 (must be from 0 to"),
        ("causes", {"token": 1, "at": 99}, "position 99"),
        ("patching", {"other": "fox"}, "the other text has 3 tokens (must be 9"),
        ("patching", {"other": OTHER, "right": 1, "wrong": 1}, "both texts lead to"),
        ("compare", {"against": "bert"}, "different tokenizers"),
        ("compare", {"against": "gone"}, "run 'gone': not in"),
    ],
)
def test_refusals(get: Any, part: str, params: dict[str, Any], said: str) -> None:
    assert said in get(part, status=400, run="gpt", text=SENTENCE, **params)["error"]
