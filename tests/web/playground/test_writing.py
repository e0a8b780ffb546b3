"""The playground: tokens are those that the library generates, probabilities those that the model gives."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest


def wrote(ask: Any, **form: Any) -> Any:
    return ask(
        "/api/playground", {"run": "one", "prompt": "the ", "length": 6, "options": {"seed": "3"}} | form
    )


def test_tokens_and_probabilities_are_those_of_the_program(ask: Any, runs: Path) -> None:
    found = wrote(ask)
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(found["python"], names)
    ids = [token["id"] for token in found["tokens"]]
    assert ids == names["ids"] + names["more"] and len(names["more"]) == 6
    assert found["text"] == names["tokenizer"].decode(ids)
    shown = [token["p"] for token in found["tokens"][1:]]
    assert str(shown) in printed.getvalue()
    for token in found["tokens"][1:]:
        assert {each["id"]: each["p"] for each in token["top"]}.get(token["id"], token["p"]) == token["p"]
        assert token["top"][0]["p"] == max(each["p"] for each in token["top"])


def test_a_branch_goes_on_from_other_tokens(ask: Any, runs: Path) -> None:
    first = wrote(ask)
    at = first["prompt"] + 2
    other = first["tokens"][at]["top"][-1]["id"]
    begun = [token["id"] for token in first["tokens"][:at]] + [other]
    branch = wrote(ask, ids=begun)
    assert [token["id"] for token in branch["tokens"][: at + 1]] == begun
    assert branch["prompt"] == at + 1 and not branch["tokens"][at + 1]["given"]
    assert branch["tokens"][at]["p"] == pytest.approx(first["tokens"][at]["top"][-1]["p"], rel=1e-5)


def test_temperature_0_takes_the_likeliest(ask: Any, runs: Path) -> None:
    found = wrote(ask, options={"temperature": "0"})
    assert all(token["id"] == token["top"][0]["id"] for token in found["tokens"] if not token["given"])


def test_without_a_prompt_one_is_chosen_that_the_model_can_read(ask: Any, runs: Path) -> None:
    found = wrote(ask, prompt=None)
    assert found["asked"] == "the " and found["text"].startswith("the ")
    assert ask("/api/microscope/view", run="one")["text"] == "the "


def test_the_context_ends_the_text(ask: Any, runs: Path) -> None:
    found = wrote(ask, length=300)
    assert found["full"] and len(found["tokens"]) == 16


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"prompt": "the " * 10}, "the prompt has 40 tokens (must be fewer than 16)"),
        ({"length": 0}, "length is 0"),
        ({"length": "5"}, "must have a run"),
        ({"options": {"temperature": "warm"}}, "temperature is 'warm' (must be a number)"),
        ({"options": {"top_p": "3"}}, "top_p is 3.0 (must be from 0 to 1)"),
        ({"options": {"stop": "x"}}, "no option 'stop'"),
        ({"ids": [1, 9999]}, "id 9999"),
        ({"ids": ["1"]}, "must have a run"),
        ({"ids": []}, "must have a run"),
        ({"run": "none"}, "run 'none'"),
        ({"run": 3}, "must have a run"),
    ],
)
def test_refusals(ask: Any, runs: Path, form: dict[str, Any], said: str) -> None:
    asked = {"run": "one", "prompt": "the ", "length": 6, "options": {}} | form
    assert said in ask("/api/playground", asked, status=400)["error"]
