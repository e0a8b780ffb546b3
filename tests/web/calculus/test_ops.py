"""A page for every op: equations, code, and numbers that equal the library's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from chainrule import ops
from chainrule.autograd import EntryCheck

NAMES = sorted(ops.all_ops())


def test_the_list_is_that_of_the_room(ask: Any) -> None:
    listed = ask("/api/ops")
    assert [op["name"] for op in listed] == NAMES
    assert all(op["about"] and op["page"] for op in listed)


@pytest.mark.parametrize("name", NAMES)
def test_every_op_is_right_on_the_numbers_that_are_shown(ask: Any, name: str) -> None:
    found = ask(f"/api/ops/{name}/check", example=0)
    assert found["error"] < 1e-6
    names: dict[str, Any] = {}
    exec(found["python"], names)
    check = names["check"]
    assert isinstance(check, EntryCheck)
    for output, y in zip(found["outputs"], check.outputs, strict=True):
        assert np.array_equal(output["value"], y)
    for given, grad in zip(found["inputs"], check.grads, strict=True):
        assert (given["grad"] is None) == (grad is None)
        assert grad is None or np.array_equal(given["grad"], grad)


@pytest.mark.parametrize("name", NAMES)
def test_every_op_is_described(ask: Any, name: str) -> None:
    found = ask(f"/api/ops/{name}")
    assert found["equations"] or found["formula"]
    assert found["derivation"] and found["examples"] >= 1
    shown = [line["text"] for part in found["code"] for line in part["lines"]]
    assert any(line.lstrip().startswith("def ") for line in shown)


@pytest.mark.parametrize("name", NAMES)
def test_equations_code_and_derivation_agree(ask: Any, name: str) -> None:
    """The numbers at the lines are those of the equations, and both call what arrives at the output dy."""
    found = ask(f"/api/ops/{name}")
    lines = [line for part in found["code"] for line in part["lines"]]
    written = {block["tag"]: block["math"] for block in found["equations"]}
    assert {*written} == {tag for line in lines for tag in line["tags"]}
    assert not any(f"[{tag}]" in line["text"] for line in lines for tag in line["tags"])  # it stands beside
    derived = {block["tag"]: block["math"] for block in found["derivation"] if block["kind"] == "equation"}
    own = {tag.partition(".")[0] for tag in derived if tag}
    assert all(derived[tag] == math for tag, math in written.items() if tag.partition(".")[0] in own)
    names = set(re.findall(r"[a-zA-Z]+", " ".join(line["text"] for line in lines)))
    gates = re.findall("<mi>[gG]</mi>", " ".join(written.values()))
    assert not gates or "g" in names  # a gate is called g in the code too


def test_edits_change_inputs_constants_and_the_gradient_that_arrives(ask: Any) -> None:
    edits = {"x.1": "2.5", "axis": "0", "dy.0": "4"}
    found = ask("/api/ops/softmax/check", **edits)
    x = np.array(found["inputs"][0]["value"])
    assert x[0, 1] == 2.5 and found["outputs"][0]["seed"][0][0] == 4
    assert np.allclose(found["outputs"][0]["value"], ops.softmax(x, axis=0))
    assert "axis=0" in found["python"]
    untouched = ask("/api/ops/softmax/check")
    assert np.array(untouched["inputs"][0]["value"])[0, 1] != 2.5


def test_ids_can_be_edited(ask: Any) -> None:
    found = ask("/api/ops/embedding/check", **{"ids.0": "2"})
    assert next(c for c in found["constants"] if c["name"] == "ids")["array"][0] == 2
    assert found["outputs"][0]["value"][0] == found["inputs"][0]["value"][2]


@pytest.mark.parametrize(
    ("path", "params", "said"),
    [
        ("/api/ops/sofmax", {}, "op: no op 'sofmax'"),
        (
            "/api/ops/softmax/check",
            {"x.99": "1"},
            "x.99 is '1' (must be a finite number at a place from 0 to 11)",
        ),
        ("/api/ops/softmax/check", {"x.0": "nan"}, "x.0 is 'nan'"),
        ("/api/ops/softmax/check", {"axis": "__import__('os')"}, "axis is"),
        ("/api/ops/softmax/check", {"axis": "7"}, "axis 7 is out of bounds"),
        ("/api/ops/softmax/check", {"other": "1"}, "nothing is called 'other'"),
        ("/api/ops/softmax/check", {"example": "99"}, "example 99"),
        ("/api/ops/softmax/check", {"example": "x"}, "example: "),
    ],
)
def test_refusals_are_one_line(ask: Any, path: str, params: dict[str, str], said: str) -> None:
    assert said in ask(path, status=400, **params)["error"]
