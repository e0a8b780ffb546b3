"""The microscope on models that predict no tokens: what the page gets is what `chainrule.inspect` computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.web.app import create_app
from chainrule.web.microscope.reading import SILENT
from tests.web.families import make_labelers, ran

TEXT = "the quick fox"
NAMES = ("classifier", "tagger", "embedder", "reward", "body")
KINDS = dict(zip(NAMES, ("labels", "tags", "vector", "reward", "vector"), strict=True))
VECTORS = ("embedder", "body")


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = make_labelers(tmp_path_factory.mktemp("labelers") / "runs")
    with TestClient(create_app(folder), base_url="http://localhost") as client:
        yield client


def test_they_are_listed_for_the_microscope_only(studio: TestClient) -> None:
    assert {each["name"] for each in studio.get("/api/models", params={"all": True}).json()} == set(NAMES)
    assert studio.get("/api/models").json() == []
    found = studio.get("/api/runs/classifier").json()
    assert found["inside"] and not found["reads"]


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_is_what_the_program_prints(get: Any, name: str) -> None:
    found = get("view", run=name, text=TEXT)
    names, printed = ran(found["python"])
    assert found["kind"] == KINDS[name] and not found["predicts"] and not found["lens"]
    assert found["pieces"] == [names["tokenizer"].piece(id) for id in found["tokens"]]
    if name == "reward":
        assert str(found["rewards"]) in printed
    elif name in VECTORS:
        assert found["vector"]["length"] == pytest.approx(1)
    else:
        logprobs = cr.inspect.label_logprobs(names["seen"])
        assert str(logprobs.tolist()) in printed
        for row, expected in zip(found["top"], logprobs, strict=True):
            assert [each["p"] for each in row] == sorted(np.exp(expected).tolist(), reverse=True)
    assert found["stream_norms"] == names["seen"].parts()["stream_norms"]
    assert get("heads", run=name)["blocks"] == [block["name"] for block in found["blocks"]]


def test_labels_have_their_names(get: Any) -> None:
    found = get("view", run="classifier", text=TEXT)
    assert {each["piece"] for each in found["top"][0]} == {"animal", "other"} and len(found["top"]) == 1
    assert len(get("view", run="tagger", text=TEXT)["top"]) == len(found["tokens"])


@pytest.mark.parametrize("name", NAMES)
def test_where_it_comes_from(get: Any, name: str) -> None:
    found = get("causes", run=name, text=TEXT, token=0, at=2, other="lazy dog" if name in VECTORS else None)
    _, printed = ran(found["python"])
    assert printed.strip() == f"{found['logit']} {found['gradient']['text']}"
    assert found["terms"] is None


def test_an_embedder_needs_another_text(get: Any) -> None:
    assert "no other text" in get("causes", run="embedder", text=TEXT, token=0, at=0, status=400)["error"]


@pytest.mark.parametrize("name", NAMES)
def test_edits_move_it(get: Any, name: str) -> None:
    plain = get("view", run=name, text=TEXT)
    block = plain["blocks"][0]["name"]
    edits = json.dumps([{"kind": "off", "block": block, "head": 0}])
    found = get("view", run=name, text=TEXT, edits=edits)
    changed = found["changed"]
    if name == "reward" or name in VECTORS:
        before, after = changed["numbers"]
        assert before != after
        if name == "reward":
            assert [before, after] == [plain["rewards"][-1], found["rewards"][-1]]
        return
    assert all(kl >= -1e-9 for kl in changed["kl"]) and max(changed["kl"]) > 0
    assert {(e["id"], e["after"]) for e in changed["moved"][0]} == {
        (e["id"], e["p"]) for e in found["top"][0]
    }


def test_wrong_choices_are_refused(get: Any, studio: TestClient, tmp_path: Path) -> None:
    assert "label 9" in get("causes", run="classifier", text=TEXT, token=9, at=0, status=400)["error"]
    assert "position 99" in get("causes", run="reward", text=TEXT, token=0, at=99, status=400)["error"]


@pytest.mark.parametrize("name", NAMES)
def test_parts_about_predictions_are_refused(get: Any, name: str) -> None:
    parts: dict[str, dict[str, Any]] = {
        "lens": {}, "ablation": {}, "compare": {"against": name}, "patching": {"other": "the lazy dog"},
    }  # fmt: skip
    for part, given in parts.items():
        error = get(part, run=name, text=TEXT, status=400, **given)["error"]
        assert f"this model gives {SILENT[KINDS[name]].gives} and writes no tokens" in error
    assert "sees the whole text" in get("window", run=name, text=TEXT, at=0, status=400)["error"]


@pytest.mark.parametrize("name", NAMES)
def test_the_playground_says_that_they_write_nothing(studio: TestClient, name: str) -> None:
    answer = studio.post("/api/playground", json={"run": name, "prompt": TEXT})
    while answer.status_code == 202:
        answer = studio.get(f"/api/jobs/{answer.json()['job']}")
    assert answer.status_code == 400 and "writes no tokens" in answer.json()["error"]
