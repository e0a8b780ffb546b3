"""n-grams: the table is that of the program it is copied as, and of counting by hand."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import pytest

from chainrule.web.lab import ngrams


def array(packed: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"]), np.float32).reshape(packed["shape"])


@pytest.mark.parametrize(
    "asked",
    [
        {"source": "words"},
        {"source": "words", "order": 1},
        {"source": "own", "own": "emma\nava\nmia", "order": 3, "before": "m", "method": "add", "s": 0.5},
        {
            "source": "own",
            "own": "emma\nava\nmia\nanna\nlena",
            "order": 4,
            "before": "a",
            "method": "kneser-ney",
        },
        {"source": "identifiers", "order": 2, "method": "good-turing"},
    ],
)
def test_the_table_is_that_of_the_program(ask: Any, asked: dict[str, Any]) -> None:
    found = ask("/api/ngrams", **asked)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert found["tokens"] == names["tokens"]
    assert np.allclose(array(found["table"]), names["table"], atol=1e-7)
    assert found["nll"] == pytest.approx(names["model"].nll())
    assert found["samples"] == names["samples"]
    if asked.get("method") != "good-turing":
        assert np.allclose(array(found["table"]).sum(axis=1), 1, atol=1e-5)


def test_emma_by_hand(ask: Any) -> None:
    found = ask("/api/ngrams", source="own", own="emma")
    assert found["tokens"] == [".", "a", "e", "m"]
    assert array(found["table"])[3].tolist() == [0, 0.5, 0, 0.5]
    assert array(found["counts"])[3].tolist() == [0, 1, 0, 1]
    assert found["nll"] == pytest.approx(2 * math.log(2) / 5)
    assert found["held_out"] is None  # nothing is left to count


def test_smoothing_makes_the_loss_on_new_words_finite(ask: Any) -> None:
    plain, added = (
        ask("/api/ngrams", source="own", own=ngrams.EXAMPLE, method=method) for method in ("mle", "add")
    )
    assert plain["held_out"] is None and added["held_out"] > 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"source": "nothing"}, "source 'nothing' (must be one of words, identifiers, own)"),
        ({"order": 9}, "order is 9 (must be from 1 to 5)"),
        ({"source": "own", "own": " "}, "no words"),
        ({"source": "own", "own": "ab", "order": 3, "before": "z"}, "letter 'z' (must be one of .ab)"),
        ({"method": "magic"}, "method 'magic'"),
        ({"method": "add", "s": -1}, "s is -1"),
        ({"source": "own", "own": "ä" * 2_001}, "12,006 bytes of words in an address (at most 12,000)"),
        (
            {"source": "own", "own": "".join(map(chr, range(200, 351)))},
            "151 different characters (at most 150)",
        ),
    ],
)
def test_refusals(ask: Any, asked: dict[str, Any], said: str) -> None:
    assert said in ask("/api/ngrams", status=400, **asked)["error"]
