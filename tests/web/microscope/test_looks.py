"""The microscope on every family: what the page gets is what `chainrule.inspect` computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from tests.web.families import SENTENCE, SIZES, TRANSFORMERS, arrays, ran

ALL = (*SIZES, "seq2seq", "imported", "talker")


def test_every_family_is_listed_and_imported_models_too(studio: TestClient) -> None:
    found = studio.get("/api/models").json()
    assert {each["name"] for each in found} == set(ALL)
    assert next(each for each in found if each["name"] == "imported")["steps"] == []


@pytest.mark.parametrize("family", ALL)
def test_predictions_are_those_of_the_program(get: Any, family: str) -> None:
    found = get("view", run=family, text=SENTENCE)
    names, printed = ran(found["python"])
    expected = names["seen"].summary(len(found["top"][0]))
    for key in ("tokens", "targets", "loss", "rank", "entropy", "stream_norms"):
        assert found[key] == expected[key], key
    assert str(expected["loss"]) in printed
    assert [[[e["id"], e["p"]] for e in row] for row in found["top"]] == expected["top"]
    assert (
        found["kind"] == {"bert": "masked", "seq2seq": "pair"}.get(family, "next")
        and found["changed"] is None
    )
    assert found["pieces"] == [names["tokenizer"].piece(id) for id in found["tokens"]]
    assert get("architecture", run=family)["parameters"] == names["model"].count()
    assert found["lens"] is (family not in ("ngram",))
    if found["lens"]:
        lens, own = (
            get("lens", run=family, text=SENTENCE),
            cr.inspect.logit_lens(names["model"], names["ids"], top=1),
        )
        assert lens["rank"] == own.rank.tolist() and lens["streams"] == own.streams


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_attention_heads_and_neurons(get: Any, families: Path, family: str) -> None:
    found = get("view", run=family, text=SENTENCE)
    block = found["blocks"][0]["name"]
    seen = ran(found["python"])[0]["seen"]
    maps = arrays(get("attention", run=family, text=SENTENCE, block=block))
    assert np.array_equal(maps, seen.attention(block)) and np.allclose(maps.sum(-1), 1, atol=1e-5)
    neurons = arrays(get("neurons", run=family, text=SENTENCE, block=block))
    assert np.array_equal(neurons, seen.neurons(block)) and neurons.any()
    scores = get("heads", run=family)
    expected = cr.inspect.head_scores(cr.load(families / family)[0])
    assert scores["previous"] == expected.to_dict()["previous"]
    assert tuple(scores["best"]["previous"]) == expected.best("previous")


def test_a_source_and_a_target(get: Any, families: Path) -> None:
    found = get("view", run="seq2seq", text="the fox", target="fox")
    seen = ran(found["python"])[0]["seen"]
    assert found["source"] == [cr.load(families / "seq2seq")[1].piece(int(id)) for id in seen.given[0][0]]
    assert {block["of"] for block in found["blocks"]} == {"source", "text"}
    crossing = next(block for block in found["blocks"] if True in block["cross"])
    params = {"run": "seq2seq", "text": "the fox", "target": "fox", "block": crossing["name"]}
    maps = arrays(get("attention", cross=True, **params))
    assert np.array_equal(maps, seen.attention(crossing["name"], cross=True))
    assert maps.shape[1:] == (len(found["pieces"]), len(found["source"]))
    edits = json.dumps([{"kind": "off", "block": crossing["name"], "head": 0, "cross": True}])
    assert max(get("view", edits=edits, **params)["changed"]["kl"]) > 0


def test_without_a_target_it_is_the_models_own(get: Any, families: Path) -> None:
    found = get("view", run="seq2seq", text="the fox")
    model, tokenizer = cr.load(families / "seq2seq")
    from chainrule.tasks.pairs.translating import translate_texts

    assert found["target"] == translate_texts(model, tokenizer, ["the fox"])[0]


@pytest.mark.parametrize("family", ["lstm", "gru", "rnn"])
def test_gates(get: Any, family: str) -> None:
    found = get("view", run=family, text=SENTENCE)
    block = next(each["name"] for each in found["blocks"] if each["recurrent"])
    gates = get("gates", run=family, text=SENTENCE, block=block)
    expected = ran(found["python"])[0]["seen"].gates(block)
    assert gates.keys() == expected.keys()
    assert all(np.array_equal(arrays(gates[name]), expected[name]) for name in gates)


@pytest.mark.parametrize("at", [0, 5])
def test_what_a_window_sees(get: Any, families: Path, at: int) -> None:
    found = get("window", run="ngram", text=SENTENCE, at=at)
    model, tokenizer = cr.load(families / "ngram")
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, SENTENCE))
    assert found["sees"] == [None if at == 0 else SENTENCE[at - 1], SENTENCE[at]]
    assert np.allclose(np.sum(found["rows"], axis=0), found["logits"], atol=1e-6)
    assert found["logits"] == [float(seen.logits[at, id]) for id, _ in seen.top(8)[at]]
    model, tokenizer = cr.load(families / "mlp")
    found = get("window", run="mlp", text=SENTENCE, at=at)
    ids = [model.config.vocab_size if p is None else int(tokenizer.encode(p)[0]) for p in found["sees"]]
    assert found["rows"] == model.embedding.weight.numpy()[ids].astype(np.float64).tolist()


@pytest.mark.parametrize("family", ALL)
def test_the_value_of_every_node(get: Any, family: str) -> None:
    nodes = get("architecture", run=family)["nodes"]
    seen = ran(get("view", run=family, text=SENTENCE)["python"])[0]["seen"]
    for node in {len(nodes) // 2: nodes[len(nodes) // 2], 0: nodes[0], -1: nodes[-1]}.values():
        found, expected = get("value", run=family, text=SENTENCE, call=node["name"]), seen.value(node["name"])
        assert found["shape"] == list(expected.shape)
        assert found["mean"] == pytest.approx(float(expected.astype(np.float64).mean()), rel=1e-12)
        assert np.array_equal(arrays(found["values"]).reshape(-1), expected.reshape(-1))


@pytest.mark.parametrize(
    ("part", "params", "said"),
    [
        ("view", {"text": ""}, "no text to read"),
        ("view", {"text": "fox " * 60}, "tokens (at most 24: shorten the text)"),
        ("view", {"text": "the 9"}, "unknown character"),
        ("view", {"text": "the", "step": 77}, "no checkpoint at step 77"),
        ("view", {"text": "the", "run": "nosuch"}, "run 'nosuch': not in"),
        ("attention", {"text": "the", "block": "other"}, "no block 'other'"),
        ("gates", {"text": "the", "block": "h.0"}, "is not recurrent"),
        ("value", {"text": "the", "call": "h.0.mlp.gell"}, "nothing named 'h.0.mlp.gell'"),
    ],
)
def test_refusals(get: Any, part: str, params: dict[str, Any], said: str) -> None:
    assert said in get(part, status=400, **{"run": "gpt"} | params)["error"]


def test_a_text_and_a_target_are_two_things(get: Any) -> None:
    pairs = (("fox dog", "the"), ("fox", "dog the"))  # joined they read the same
    long, short = (get("view", run="seq2seq", target=target, text=text)["tokens"] for target, text in pairs)
    assert len(long) > len(short)
