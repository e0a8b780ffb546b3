"""Embeddings: neighbors, analogies and the map are the library's, of built-in vectors and of a run."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.cli.main import main
from chainrule.inspect.embedding_space import principal_components
from chainrule.nn.positions import sinusoidal
from chainrule.web.app import create_app
from chainrule.web.lab import embeddings
from chainrule.web.models import Loaded
from tests.web.families import SIZES, make_families, ran


def array(packed: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"]), np.float32).reshape(packed["shape"])


def test_built_in_vectors_are_those_of_the_program(ask: Any) -> None:
    found = ask("/api/embeddings", word="string", a="lists", b="list", c="string")
    names: dict[str, Any] = {}
    exec(found["python"], names)
    vectors = names["vectors"]
    assert [(each["word"], each["cosine"]) for each in found["neighbors"]] == names["neighbors"]
    assert found["analogy"][0]["word"] == vectors.analogy("lists", "list", "string")[0][0]
    components = principal_components(vectors.matrix[: embeddings.KNOWN])
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
        ("/positions", {"base": "nan"}, "base is nan (must be from 1 to 1e+09)"),
    ],
)
def test_refusals(ask: Any, path: str, asked: dict[str, Any], said: str) -> None:
    assert said in ask(f"/api/embeddings{path}", status=400, **asked)["error"]


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every family, imported models, and word vectors."""
    folder = make_families(tmp_path_factory.mktemp("families") / "runs")
    words = ["train", "word2vec", str(folder.parent / "fox.txt"), "--dim", "8", "--epochs", "2", "--out"]
    main([*words, str(folder / "words")])
    return folder


def test_every_family_and_imported_models_have_vectors(families: Path) -> None:
    with TestClient(create_app(families), base_url="http://127.0.0.1:8420") as client:
        listed = client.get("/api/embeddings/sources").json()
        names = {each["name"] for each in listed[1:]}
        assert names == {*SIZES, "seq2seq", "imported", "talker", "words"} - {"ngram"}
        for name in sorted(names):
            answer = client.get("/api/embeddings", params={"run": name})
            while answer.status_code == 202:
                answer = client.get(f"/api/jobs/{answer.json()['job']}")
            assert answer.status_code == 200, (name, answer.text)
            found = answer.json()
            program, _ = ran(found["python"])
            assert [(each["word"], each["cosine"]) for each in found["neighbors"]] == program["neighbors"], (
                name
            )


def test_tables_are_those_of_the_models(families: Path) -> None:
    for name, find in (
        ("bert", lambda model: model.bert.embeddings.word_embeddings if hasattr(model, "bert") else None),
        ("llama", lambda model: model.embed_tokens),
        ("lstm", lambda model: model.embedding),
        ("mlp", lambda model: model.embedding),
    ):
        model, tokenizer = cr.load(families / name)
        layer = find(model)
        if layer is not None:
            vectors, _ = embeddings.tables(Loaded(families / name, model, tokenizer))
            assert np.array_equal(vectors.matrix, layer.weight.array[: tokenizer.vocab_size]), name
