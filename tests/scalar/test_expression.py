"""Expressions written as text: the same numbers as the same program, and a refusal in words for everything else."""

from __future__ import annotations

import random

import pytest

from chainrule.errors import ConfigError
from chainrule.foundations.calculus import partial
from chainrule.scalar import Expression, Value, backward_steps

VALUES = {"a": 0.7, "b": -1.3, "c": 2.0, "x": 0.4}


def ran(program: str) -> dict[str, Value]:
    names: dict[str, Value] = {}
    exec(program, names)
    return names


TEXTS = [
    "a", "3", "-2.5", "a + b", "a - -b", "a * b / c", "c ** 3", "c ** -1.5", "+a", "-(a + b)",
    "tanh(a * x + b)", "exp(sin(a)) * cos(b) + log(c)", "relu(b) + relu(a)", "sigmoid(-x)", "sqrt(c + 2)",
    "exp(1) * a", "h = a * x; y = tanh(h + b); y * y", "h = 2 + 3\nexp(h) * a", "a + a * a", "u = a; u * u",
    "tanh(tanh(a))", "2 * 3 - 1",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_are_those_of_the_program_it_is_copied_as(text: str) -> None:
    found = Expression.read(text)
    nodes = found.graph(VALUES)
    nodes[found.root].backward()
    names = ran(found.python(VALUES))
    assert nodes[found.root].data == pytest.approx(names[found.root].data, rel=1e-12)
    for name in found.variables:
        assert nodes[name].grad == pytest.approx(names[name].grad, rel=1e-12)


@pytest.mark.parametrize("text", [text for text in TEXTS if Expression.read(text).variables])
def test_gradients_are_those_of_central_differences(text: str) -> None:
    found = Expression.read(text)
    names = list(found.variables)
    nodes = found.graph(VALUES)
    nodes[found.root].backward()
    for i, name in enumerate(names):
        slope = partial(
            lambda at: found.graph(dict(zip(names, at.tolist(), strict=True)))[found.root].data,
            [VALUES[each] for each in names],
            i,
        )
        assert nodes[name].grad == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_the_steps_of_backward_end_with_the_gradients() -> None:
    rng = random.Random(0)
    for text in ("a * b + a * c + tanh(a)", "h = a * b; k = h + c; h * k * a"):
        values = {name: rng.uniform(0.5, 2) for name in VALUES}
        nodes = Expression.read(text).graph(values)
        root = nodes[Expression.read(text).root]
        totals = {node: grad for node, grad, _ in backward_steps(root)}
        root.backward()
        assert {node: pytest.approx(node.grad) for node in root.graph()} == totals


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("a +", "cannot be read"),
        ("a ^ 2", r"a \^ 2 .a power is written x \*\* 2"),
        ("a ** b", r"exponent b .*exp\(y \* log\(x\)\)"),
        ("round(a)", r"round\(...\) \(must be a function of one number: exp, log"),
        ("__import__('os')", "__import__"),
        ("a.b", "must be numbers, names"),
        ("[a]", "must be numbers, names"),
        ("True + a", "'True'"),
        ("a; b", "a is not used"),
        ("h = a; h = b", "h gets two meanings"),
        ("x = x + 1", "x gets two meanings"),
        ("exp = a", "exp is a function"),
        ("import os", "import os"),
        ("a" * 501, "501 characters"),
        ("(" * 300 + "a" + ")" * 180, "cannot be read"),
        ("a ** 1e999", "exponent inf"),
    ],
)
def test_everything_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Expression.read(text)


def test_values_that_are_missing_or_outside_the_domain_are_refused() -> None:
    with pytest.raises(ConfigError, match="b without a value"):
        Expression.read("a + b").graph({"a": 1})
    with pytest.raises(ConfigError, match=r"log: -1.0 \(must be > 0\)"):
        Expression.read("log(a)").graph({"a": -1})
