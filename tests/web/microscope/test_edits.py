"""What is changed inside a model: the page, the program behind it and the library agree."""

from __future__ import annotations

import json
from typing import Any

import pytest

import chainrule as cr
from chainrule.web.microscope.edits import KINDS, PATTERNS
from tests.web.families import SENTENCE, ran

OTHER = "the brown"[: len(SENTENCE)]
EDITS: list[dict[str, Any]] = [
    {"kind": "off", "block": "h.0", "head": 1},
    {"kind": "mean", "block": "h.1", "head": 0},
    {"kind": "look", "block": "h.0", "head": 0, "query": 5, "key": 2},
    *({"kind": "pattern", "block": "h.1", "head": 1, "pattern": name} for name in PATTERNS),
    {"kind": "patch", "block": "h.0", "text": OTHER},
    {"kind": "patch", "block": "h.1", "text": OTHER, "at": 4, "part": "mlp"},
    {"kind": "steer", "block": "h.0", "towards": "fox", "away": "dog", "scale": 3.5},
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: "-".join(map(str, edit.values())))
def test_an_edit_changes_what_the_program_says(get: Any, edit: dict[str, Any]) -> None:
    whole = get("view", run="gpt", text=SENTENCE)
    found = get("view", run="gpt", text=SENTENCE, edits=json.dumps([edit]))
    names, printed = ran(found["python"])
    assert found["loss"] == names["seen"].summary()["loss"] != whole["loss"]
    effect = cr.inspect.effect(names["model"], names["ids"], names["edits"])
    assert found["changed"]["kl"] == effect.kl.tolist() and max(found["changed"]["kl"]) > 0
    assert str(effect.kl.tolist()) in printed
    moved = [
        [(each["id"], each["before"], each["after"]) for each in row] for row in found["changed"]["moved"]
    ]
    assert moved[-1] == effect.changes(-1, 6) and len(found["changed"]["said"]) == 1


def test_all_at_once(get: Any) -> None:
    found = get("view", run="gpt", text=SENTENCE, edits=json.dumps(EDITS))
    assert {edit["kind"] for edit in EDITS} == set(KINDS)
    assert found["loss"] == ran(found["python"])[0]["seen"].summary()["loss"]


@pytest.mark.parametrize("family", ["llama", "bert", "lstm", "mlp", "seq2seq"])
def test_patches_and_pushes_in_other_families(get: Any, family: str) -> None:
    block = get("view", run=family, text=SENTENCE)["blocks"][-1]["name"]
    target = {"target": "fox"} if family == "seq2seq" else {}
    edits = [{"kind": "patch", "block": block, "text": OTHER, **target}]
    found = get("view", run=family, text=SENTENCE, edits=json.dumps(edits), **target)
    assert found["loss"] == ran(found["python"])[0]["seen"].summary()["loss"]


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ("{", "must be a list of at most 40 edits"),
        ("{}", "must be a list"),
        ('[{"kind": "burn"}]', "must have a kind: off, mean, look, pattern, patch, steer"),
        ('[{"kind": "off", "block": "h.0"}]', "edit off has no head"),
        ('[{"kind": "off", "block": "h.0", "head": "1"}]', "off: head is '1' (must be of type int)"),
        ('[{"kind": "off", "block": "h.9", "head": 0}]', "no block 'h.9'"),
        ('[{"kind": "off", "block": "h.0", "head": 9}]', "head 9"),
        (
            '[{"kind": "look", "block": "h.0", "head": 0, "query": 50}]',
            "token 50 looks at 0 (must be within 9 × 9)",
        ),
        ('[{"kind": "pattern", "block": "h.0", "head": 0, "pattern": "x"}]', "pattern 'x' (must be one of"),
        (
            '[{"kind": "patch", "block": "h.0", "text": "fox"}]',
            "the other text has 3 tokens (must be 9, as this one)",
        ),
        (
            '[{"kind": "steer", "block": "h.0", "towards": "a", "away": "b", "scale": NaN}]',
            "steer: scale is 'nan'",
        ),
    ],
)
def test_refusals(get: Any, edits: str, said: str) -> None:
    assert said in get("view", status=400, run="gpt", text=SENTENCE, edits=edits)["error"]


def test_gates_are_seen_with_the_edits(get: Any) -> None:
    blocks = [
        block["name"] for block in get("view", run="lstm", text=SENTENCE)["blocks"] if block["recurrent"]
    ]
    push = json.dumps([{"kind": "steer", "block": blocks[0], "towards": "fox", "away": "dog", "scale": 3}])
    plain = get("gates", run="lstm", text=SENTENCE, block=blocks[-1])
    assert get("gates", run="lstm", text=SENTENCE, block=blocks[-1], edits=push) != plain


def test_a_push_beyond_all_numbers_is_refused(get: Any) -> None:
    push = json.dumps([{"kind": "steer", "block": "h.0", "towards": "fox", "away": "dog", "scale": 1e38}])
    said = get("view", run="gpt", text=SENTENCE, edits=push, status=400)["error"]
    assert said == "microscope: predictions are not finite (take back the last change)"
