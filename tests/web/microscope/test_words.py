"""The microscope on models without layers: what the page gets is what `chainrule.inspect` computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import chainrule as cr
from chainrule.models import registry
from chainrule.web.app import create_app
from chainrule.web.runs.overview import OTHERS, READERS
from tests.web.families import arrays, make_flat, ran

TEXT = "the quick fox xyzzy"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_flat(tmp_path_factory.mktemp("flat") / "runs")


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[TestClient]:
    with TestClient(create_app(folder), base_url="http://localhost") as client:
        yield client


def test_every_family_can_be_looked_at() -> None:
    assert {*registry.ALL} <= {*READERS, *OTHERS}


def test_a_bag_is_the_sum_of_its_words(get: Any, folder: Path) -> None:
    view, whole = get("view", run="bag", text=TEXT), get("words", run="bag", text=TEXT)
    names, printed = ran(view["python"])
    seen = names["seen"]
    assert view["kind"] == "bag" and not view["predicts"] and view["blocks"] == []
    assert {each["piece"]: each["p"] for each in view["top"][0]} == dict(
        zip(whole["labels"], whole["p"], strict=True)
    )
    assert whole["labels"] == ["animal", "other"] and whole["p"] == np.exp(seen.logprobs).tolist()
    assert view["adds"] == seen.by_token.tolist() and str(view["adds"]) in printed
    assert whole["without"] == np.exp(seen.without).tolist()
    assert [tuple(term["tokens"]) for term in whole["terms"]] == [term.tokens for term in seen.terms]
    assert [term["words"] for term in whole["terms"]][:2] == [["the"], ["quick"]]
    assert [tuple(term["adds"]) for term in whole["terms"]] == [term.adds for term in seen.terms]


def test_words_have_neighbors_and_are_alike(get: Any, folder: Path) -> None:
    view, whole = get("view", run="words", text=TEXT), get("words", run="words", text=TEXT)
    _, printed = ran(view["python"])
    vectors = cr.inspect.embeddings.WordVectors(*cr.runs.load_vectors(folder / "words"))
    known = ["the", "quick", "fox"]
    assert view["kind"] == "words" and view["places"] == whole["places"] == [0, 1, 2]
    assert view["pieces"] == [*known, "<unk>"] and view["vector"] == {"words": len(vectors.words), "size": 8}
    for word, near in zip(known, whole["neighbors"], strict=True):
        assert [(each["word"], each["cosine"]) for each in near] == vectors.neighbors(word, 10)
    assert np.array_equal(arrays(whole["cosines"]), vectors.table(known).astype(np.float32))
    assert str(vectors.table(known).tolist()) in printed
    assert np.array_equal(arrays(whole["vectors"]), vectors.matrix[[vectors.id(word) for word in known]])


def test_a_checkpoint_of_word_vectors(get: Any, folder: Path) -> None:
    first = cr.runs.RunFolder(folder / "words").saved()[0]
    step = int(first.name.removeprefix("step_"))
    whole = get("words", run="words", step=step, text="fox")
    assert np.array_equal(arrays(whole["vectors"])[0], _vector(first, "fox"))


def _vector(path: Path, word: str) -> Any:
    words, matrix = cr.runs.load_vectors(path)
    return matrix[words.index(word)]


def test_a_text_of_unknown_words(get: Any) -> None:
    assert get("view", run="words", text="xyzzy")["places"] == []
    assert get("words", run="words", text="xyzzy")["neighbors"] == []


@pytest.mark.parametrize("run", ["bag", "words"])
@pytest.mark.parametrize(
    ("part", "params"),
    [
        ("attention", {"block": "h.0"}), ("gates", {"block": "h.0"}), ("lens", {}), ("neurons", {"block": "h.0"}),
        ("value", {"call": "x"}), ("window", {"at": 0}), ("heads", {}), ("architecture", {}),
        ("causes", {"token": 0, "at": 0}), ("ablation", {}), ("patching", {"other": "a fox"}),
        ("compare", {"against": "bag"}),
    ],
)  # fmt: skip
def test_what_needs_layers_is_refused_in_one_line(
    get: Any, run: str, part: str, params: dict[str, Any]
) -> None:
    said = get(part, status=400, run=run, text=TEXT, **params)["error"]
    assert "this model gives" in said and "choose another model" in said


def test_a_model_with_layers_is_no_sum_over_words(families: Path) -> None:
    with TestClient(create_app(families), base_url="http://localhost") as client:
        said = client.get("/api/microscope/words", params={"run": "gpt"}).json()["error"]
    assert "GPT has layers" in said
