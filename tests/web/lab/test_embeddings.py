"""Embeddings: neighbors, analogies and the map are the library's, of built-in vectors and of a run."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.inspect.embedding_space import principal_components
from chainrule.nn.positions import sinusoidal
from chainrule.web.lab import embeddings


def array(packed: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"]), np.float32).reshape(packed["shape"])


def test_built_in_vectors_are_those_of_the_program(ask: Any) -> None:
    found = ask("/api/embeddings", word="string", a="lists", b="list", c="string")
    names: dict[str, Any] = {}
    exec(found["python"], names)
    vectors = names["vectors"]
    assert [(each["word"], each["cosine"]) for each in found["neighbors"]] == names["neighbors"]
    assert found["analogy"][0]["word"] == vectors.analogy("lists", "list", "string")[0][0]
    components = principal_components(vectors.matrix[: 8 * embeddings.SHOWN])
    rows = [vectors.id(word) for word in found["map"]["words"]]
    assert np.allclose(array(found["map"]["points"]), components.project(vectors.matrix[rows]), atol=1e-4)
    assert found["map"]["words"][0] == "string"


def test_vectors_of_a_run(ask: Any, runs: Path) -> None:
    assert ask("/api/embeddings/sources")[0]["name"] == embeddings.BUILT_IN
    found = ask("/api/embeddings", run="one", word="o")
    model, tokenizer = cr.load(runs / "one")
    words = [tokenizer.piece(id) for id in range(tokenizer.vocab_size)]
    vectors = cr.inspect.embeddings.WordVectors(words, model.wte.weight.array)
    assert found["size"] == tokenizer.vocab_size and found["dim"] == 16
    assert [(each["word"], each["cosine"]) for each in found["neighbors"]] == vectors.neighbors("o")
    assert np.array_equal(array(found["positions"]["table"]), model.wpe.weight.array)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert names["neighbors"] == vectors.neighbors("o")


def test_positions(ask: Any) -> None:
    found = ask("/api/embeddings/positions", n=16, d=8)
    assert np.allclose(array(found["table"]), sinusoidal(16, 8), atol=1e-7)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert np.allclose(array(found["cosines"]), names["cosine_table"](names["table"]), atol=1e-6)
    assert found["wavelengths"][0] == pytest.approx(2 * np.pi)


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("", {"word": "zzzzzz"}, "not in the vocabulary"),
        ("", {"word": "string", "a": "list"}, "1 words (must be three"),
        ("", {"run": "nosuch"}, "nosuch"),
        ("/positions", {"n": 1}, "n is 1 (must be from 2 to 512)"),
    ],
)
def test_refusals(ask: Any, path: str, asked: dict[str, Any], said: str) -> None:
    assert said in ask(f"/api/embeddings{path}", status=400, **asked)["error"]
