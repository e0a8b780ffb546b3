"""The playground on every family: beams, translations and filled gaps are those of the library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.web.app import create_app
from tests.web.families import SIZES, arrays, make_families, ran


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_families(tmp_path_factory.mktemp("play") / "runs")


@pytest.fixture(scope="module")
def studio(families: Path) -> Iterator[TestClient]:
    with TestClient(create_app(families), base_url="http://localhost") as client:
        yield client


def played(client: TestClient, *, status: int = 200, **form: Any) -> Any:
    answer = client.post("/api/playground", json=form)
    while answer.status_code == 202:
        answer = client.get(f"/api/jobs/{answer.json()['job']}")
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.parametrize("family", [name for name in SIZES if name != "bert"])
def test_every_family_that_writes(studio: TestClient, family: str) -> None:
    found = played(studio, run=family, prompt="the ", length=5, options={"temperature": "0.7", "top_k": "3"})
    names, printed = ran(found["python"])
    assert [token["id"] for token in found["tokens"]] == [*names["ids"], *names["more"]]
    assert str([token["p"] for token in found["tokens"][1:]]) in printed
    for token in found["tokens"][found["prompt"] :]:
        left = [each for each in token["top"] if each["after"]]
        assert len(left) == 3 and sum(each["after"] for each in left) == pytest.approx(1, abs=1e-5)
        logits = np.log([each["p"] for each in left]) / 0.7
        assert [each["after"] for each in left] == pytest.approx(
            np.exp(logits) / np.exp(logits).sum(), rel=1e-4
        )
    assert found["kind"] == "next" and found["chat"] is False and found["speed"] > 0


def test_beams_are_those_of_the_library(studio: TestClient, families: Path) -> None:
    found = played(studio, run="gpt", prompt="the ", length=6, beam=3)
    model, _ = cr.load(families / "gpt")
    expected = cr.generate.beam_search(model, found["ids"], width=3, n_best=3, max_new_tokens=6)
    assert [(tuple(b["tokens"]), b["score"]) for b in found["beams"]] == [
        (e.tokens, e.score) for e in expected
    ]
    best = found["beams"][0]
    walked, node = [], best["node"]
    while node is not None:
        walked.append(found["tree"][node]["id"])
        node = found["tree"][node]["parent"]
    assert walked[::-1] == best["tokens"] and found["tree"][best["node"]]["logprob"] == best["logprob"]
    assert best["text"] in ran(found["python"])[1]


def test_a_translation_with_its_alignment(studio: TestClient, families: Path) -> None:
    found = played(studio, run="seq2seq", prompt="the fox", length=8, beam=2)
    names, printed = ran(found["python"])
    assert [token["id"] for token in found["tokens"]][: len(names["target"])] == names["target"]
    assert str([token["p"] for token in found["tokens"]][: len(names["target"])]) in printed
    maps = arrays(found["alignment"])
    for block, row in zip(found["blocks"], maps, strict=True):
        assert np.array_equal(row, names["seen"].attention(block, cross=True).mean(0))
    assert found["kind"] == "pair" and len(found["beams"]) == 2 and found["tree"]


def test_a_translation_branches(studio: TestClient) -> None:
    first = played(studio, run="seq2seq", prompt="the fox", length=8)
    assert first["tree"] is None
    other = first["tokens"][0]["top"][-1]["id"]
    branch = played(studio, run="seq2seq", prompt="the fox", length=8, ids=[other])
    assert branch["tokens"][0]["id"] == other and branch["tokens"][0]["given"]


def test_a_chat_model_answers(studio: TestClient) -> None:
    messages = [{"role": "user", "content": "the quick fox"}]
    found = played(studio, run="talker", messages=messages, length=6, options={"seed": "2"})
    names, printed = ran(found["python"])
    assert found["answer"] == names["request"].text and found["chat"] is True
    assert [token["id"] for token in found["tokens"]] == [*names["ids"], *names["more"]]
    assert str([token["p"] for token in found["tokens"][1:]]) in printed
    long = [{"role": "user", "content": "the quick fox " * 9}]
    assert "begin a new one" in played(studio, status=400, run="talker", messages=long)["error"]
    wrong = [{"role": "judge", "content": "fox"}]
    assert "must have a role" in played(studio, status=400, run="talker", messages=wrong)["error"]


def test_gaps_are_filled(studio: TestClient, families: Path) -> None:
    text = "the [MASK] fox [MASK]"
    found = played(studio, run="bert", prompt=text)
    (expected,) = cr.generate.fill_masks(*cr.load(families / "bert"), [text], len(found["gaps"][0]))
    assert found["text"] == expected.text
    assert [[(e["id"], e["piece"], e["p"]) for e in gap] for gap in found["gaps"]] == [
        [tuple(guess) for guess in gap] for gap in expected.gaps
    ]
    assert "[MASK]" in played(studio, run="bert")["asked"]
    ran(found["python"])


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"run": "bert", "prompt": "the fox"}, "has no [MASK]"),
        ({"run": "gpt", "beam": 99}, "beam is 99 (must be from 0, none, to 8)"),
        ({"run": "gpt", "messages": [{"role": "user", "content": "fox"}]}, "has no chat format"),
        ({"run": "gpt", "messages": ["fox"]}, "must have a run"),
        ({"run": "seq2seq", "prompt": ""}, "the source has 0 tokens"),
        ({"run": "seq2seq", "prompt": "fox", "ids": [1] * 30}, "the target has 30 tokens"),
    ],
)
def test_refusals(studio: TestClient, form: dict[str, Any], said: str) -> None:
    assert said in played(studio, status=400, **form)["error"]
