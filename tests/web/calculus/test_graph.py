"""An expression as a graph: numbers are those of the scalar engine, and of the program it is copied as."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.scalar import Value
from chainrule.web.calculus.graph import EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["title"])
def test_numbers_equal_those_of_the_program(ask: Any, example: dict[str, Any]) -> None:
    found = ask("/api/calculus/graph", e=example["text"], **example["values"])
    names: dict[str, Any] = {}
    exec(found["python"], names)
    nodes = {name: value for name, value in names.items() if isinstance(value, Value)}
    shown = {node["label"]: node for node in found["nodes"] if node["label"]}
    assert shown.keys() == nodes.keys()
    for name, node in nodes.items():
        assert (shown[name]["data"], shown[name]["grad"]) == (node.data, node.grad)
    for row in found["check"]:
        assert row["grad"] == nodes[row["name"]].grad == pytest.approx(row["difference"], abs=1e-8)


def test_the_drawing_has_every_node_once_and_the_steps_end_with_the_gradients(ask: Any) -> None:
    found = ask("/api/calculus/graph", e="b * b + b + tanh(a * b)", a=0.5, b=3)
    nodes = found["nodes"]
    drawn = [place["node"] for column in found["columns"] for place in column if place["node"] is not None]
    assert sorted(drawn) == [*range(len(nodes))]
    assert len(found["edges"]) == sum(len(node["children"]) for node in nodes)
    totals = {found["root"]: 1.0}
    for step in found["backward"]:
        assert totals[step["node"]] == step["grad"]
        totals |= {share["child"]: share["total"] for share in step["shares"]}
    assert [totals[i] for i in range(len(nodes))] == pytest.approx([node["grad"] for node in nodes])


def test_values_that_were_not_given(ask: Any) -> None:
    assert ask("/api/calculus/graph", e="p * q")["values"] == {"p": 2.0, "q": -3.0}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"e": "a +"}, "expression: cannot be read at 'a +' (such as: w * x + b)"),
        ({"e": "log(a)", "a": "-1"}, "log: -1.0 (must be > 0)"),
        ({"e": "a", "a": "much"}, "a is 'much' (must be a number)"),
        ({"e": "a", "a": "inf"}, "Value: got inf (must be one finite real number)"),
        ({}, "e: Field required"),
    ],
)
def test_refusals_are_one_line(ask: Any, params: dict[str, str], said: str) -> None:
    assert ask("/api/calculus/graph", status=400, **params) == {"error": said}


def test_a_difference_that_leaves_the_domain_is_said(ask: Any) -> None:
    found = ask("/api/calculus/graph", e="log(a)", a=1e-7)
    assert found["check"] == [{"name": "a", "grad": 1e7, "difference": None}]
