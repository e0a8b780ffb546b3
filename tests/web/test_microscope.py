"""The microscope on every family: what the page gets is what `chainrule.inspect` computes."""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.web.app import create_app
from tests.web.conftest import TEXT

WIDE = {"n_head": 2, "n_embd": 16, "n_layer": 1, "block_size": 16}
NARROW = {"n_embd": 8, "n_hidden": 8}
SIZES: dict[str, dict[str, Any]] = {
    "gpt": WIDE, "llama": WIDE, "neox": WIDE, "bert": WIDE, "lstm": NARROW, "gru": NARROW, "rnn": NARROW,
}  # fmt: skip
TRANSFORMERS = ("gpt", "llama", "neox", "bert")
SENTENCE = "the quick"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Path]]:
    """A Studio with a run of each family."""
    folder = tmp_path_factory.mktemp("families") / "runs"
    text = folder.parent / "fox.txt"
    text.write_text(TEXT, encoding="utf-8")
    for family, sizes in SIZES.items():
        config = cr.train.TrainConfig(max_steps=2, batch_size=2, warmup=1)
        cr.runs.Run.new(folder / family, str(text), config, family, **sizes).train()
    with TestClient(create_app(folder), base_url="http://localhost") as client:
        yield client, folder


def get(client: TestClient, path: str, *, status: int = 200, **params: Any) -> Any:
    answer = client.get(path, params=params)
    while answer.status_code == 202:
        answer = client.get(f"/api/jobs/{answer.json()['job']}")
    assert answer.status_code == status, answer.text
    return answer.json()


def arrays(packed: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"]), np.float32).reshape(packed["shape"])


def ran(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(program, names)
    return names


def test_every_family_is_listed(studio: tuple[TestClient, Path]) -> None:
    client, _ = studio
    assert {each["family"] for each in get(client, "/api/models")} == set(SIZES)
    assert {each["family"] for each in get(client, "/api/models", write=True)} == set(SIZES) - {"bert"}


@pytest.mark.parametrize("family", SIZES)
def test_predictions_are_those_of_the_program(studio: tuple[TestClient, Path], family: str) -> None:
    client, _ = studio
    found = get(client, "/api/microscope/view", run=family, text=SENTENCE)
    names = ran(found["python"])
    expected = names["seen"].summary(len(found["top"][0]))
    for key in ("tokens", "targets", "loss", "rank", "entropy", "stream_norms"):
        assert found[key] == expected[key], key
    assert [[[e["id"], e["p"]] for e in row] for row in found["top"]] == expected["top"]
    assert found["next"] == (family != "bert") and found["kl"] is None
    assert found["pieces"] == [names["tokenizer"].piece(id) for id in found["tokens"]]
    lens = get(client, "/api/microscope/lens", run=family, text=SENTENCE)
    assert lens["rank"] == names["lens"].rank.tolist() and lens["streams"] == names["lens"].streams
    assert get(client, "/api/microscope/architecture", run=family)["parameters"] == names["model"].count()


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_attention_and_heads(studio: tuple[TestClient, Path], family: str) -> None:
    client, folder = studio
    found = get(client, "/api/microscope/view", run=family, text=SENTENCE)
    block = found["blocks"][0]["name"]
    seen = ran(found["python"])["seen"]
    maps = arrays(get(client, "/api/microscope/attention", run=family, text=SENTENCE, block=block))
    assert np.array_equal(maps, seen.attention(block)) and np.allclose(maps.sum(-1), 1, atol=1e-5)
    scores = get(client, "/api/microscope/heads", run=family)
    expected = cr.inspect.head_scores(cr.load(folder / family)[0])
    assert scores["previous"] == expected.to_dict()["previous"]
    assert tuple(scores["best"]["previous"]) == expected.best("previous")


def test_a_head_is_switched_off(studio: tuple[TestClient, Path]) -> None:
    client, _ = studio
    whole = get(client, "/api/microscope/view", run="gpt", text=SENTENCE)
    found = get(client, "/api/microscope/view", run="gpt", text=SENTENCE, off="h.0:1")
    names = ran(found["python"])
    assert found["loss"] == names["seen"].summary()["loss"] != whole["loss"]
    effect = cr.inspect.effect(names["model"], names["ids"], names["edits"])
    assert found["kl"] == effect.kl.tolist() and max(found["kl"]) > 0


@pytest.mark.parametrize("family", ["lstm", "gru", "rnn"])
def test_gates(studio: tuple[TestClient, Path], family: str) -> None:
    client, _ = studio
    found = get(client, "/api/microscope/view", run=family, text=SENTENCE)
    block = next(each["name"] for each in found["blocks"] if each["recurrent"])
    gates = get(client, "/api/microscope/gates", run=family, text=SENTENCE, block=block)
    expected = ran(found["python"])["seen"].gates(block)
    assert gates.keys() == expected.keys()
    assert all(np.array_equal(arrays(gates[name]), expected[name]) for name in gates)


@pytest.mark.parametrize(
    ("part", "params", "said"),
    [
        ("view", {"text": ""}, "no text to read"),
        ("view", {"text": "fox " * 60}, "tokens (at most 16: shorten the text)"),
        ("view", {"text": "the 9"}, "unknown character"),
        ("view", {"text": "the", "off": "h.0"}, "head 'h.0' (must be a block and a number, such as h.0:1)"),
        ("view", {"text": "the", "off": "h.9:0"}, "no block 'h.9'"),
        ("view", {"text": "the", "off": "h.0:9"}, "head 9"),
        ("view", {"text": "the", "step": 77}, "no checkpoint at step 77"),
        ("attention", {"text": "the", "block": "other"}, "no block 'other'"),
        ("gates", {"text": "the", "block": "h.0"}, "is not recurrent"),
    ],
)
def test_refusals(studio: tuple[TestClient, Path], part: str, params: dict[str, Any], said: str) -> None:
    client, _ = studio
    assert said in get(client, f"/api/microscope/{part}", status=400, run="gpt", **params)["error"]
