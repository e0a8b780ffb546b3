"""Values: forward numbers, backward gradients, order of visits, and what happens to bad input."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ChainruleError, ConfigError, GraphError
from chainrule.foundations.calculus import central_difference, gradient
from chainrule.scalar import Value, add, graphs, multiply
from tests.vectors import vector

numbers = st.floats(-3, 3, allow_subnormal=False)


def slope(f: Callable[[Value], Value], x: float) -> float:
    leaf = Value(x)
    f(leaf).backward()
    return leaf.grad


def assert_slope(f: Callable[[Value], Value], x: float) -> None:
    assert slope(f, x) == pytest.approx(central_difference(lambda t: f(Value(t)).data, x), rel=1e-6, abs=1e-9)


@pytest.mark.requirement("R-001", "R-003", "R-004", "R-005")
def test_graph_of_figure_1() -> None:
    v = vector("der-graph-L")
    nodes = graphs.figure_1(*(v.inputs[name] for name in ("w1", "w2", "w3", "w6")))
    nodes["L"].backward()
    got = {name: nodes[name].data for name in ("w4", "w5", "L")}
    v.check(got | {f"d{name}": node.grad for name, node in nodes.items() if name != "L"})
    assert nodes["L"].grad == 1


@pytest.mark.requirement("R-001", "R-002")
def test_an_expression_is_a_graph() -> None:
    nodes = graphs.figure_1()
    ops = [node.op for node in nodes["L"].graph()]
    assert sorted(ops) == ["", "", "", "", "*", "*", "+"]
    assert nodes["L"].children == (nodes["w6"], nodes["w5"])
    assert nodes["w5"].children == (nodes["w3"], nodes["w4"])
    assert nodes["w4"].children == (nodes["w1"], nodes["w2"])


@pytest.mark.requirement("R-006", "R-007")
def test_sum_and_product_rules() -> None:
    v = vector("der-sum-product-rules")
    got = {}
    for name, combine in (("sum", add), ("product", multiply)):
        leaves = [Value(w) for w in v.inputs["w"]]
        combine(*leaves).backward()
        got[name] = [leaf.grad for leaf in leaves]
    v.check(got)


@pytest.mark.requirement("R-007")
@pytest.mark.parametrize(
    ("factors", "slopes"),
    [([2.0, 0.0, 3.0], [0.0, 6.0, 0.0]), ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0]), ([0.0], [1.0])],
)
def test_product_with_zero_factors(factors: list[float], slopes: list[float]) -> None:
    leaves = [Value(f) for f in factors]
    multiply(*leaves).backward()
    assert [leaf.grad for leaf in leaves] == slopes


@given(st.lists(numbers, min_size=1, max_size=6))
def test_n_ary_equals_binary(xs: list[float]) -> None:
    for combine, step in ((add, Value.__add__), (multiply, Value.__mul__)):
        once, twice = [Value(x) for x in xs], [Value(x) for x in xs]
        chained = twice[0]
        for leaf in twice[1:]:
            chained = step(chained, leaf)
        whole = combine(*once)
        whole.backward()
        chained.backward()
        assert whole.data == pytest.approx(chained.data, rel=1e-12, abs=1e-12)
        assert [x.grad for x in once] == pytest.approx([x.grad for x in twice], rel=1e-12, abs=1e-12)


def test_empty_sum_and_product() -> None:
    assert add().data == 0 and multiply().data == 1


@pytest.mark.requirement("R-008")
def test_gradients_of_all_paths_add_up() -> None:
    v = vector("der-fanout")
    got = {}
    for key, name in (("d(b+b)/db", "y"), ("d(b*b+b)/db", "z")):
        nodes = graphs.fan_out(v.inputs["b"])
        nodes[name].backward()
        got[key] = nodes["b"].grad
    v.check(got)


@pytest.mark.requirement("R-009")
def test_deep_chain_needs_no_recursion() -> None:
    leaf = Value(1.0)
    top = leaf
    for _ in range(100_000):
        top = top + 0.001
    assert len(top.graph()) == 200_001 > sys.getrecursionlimit()
    top.backward()
    assert leaf.grad == 1


@pytest.mark.requirement("R-009", "R-033")
def test_diamond_visits_each_node_once_users_first() -> None:
    nodes = graphs.diamond(0.5)
    order = nodes["z"].graph()
    assert len(order) == len(set(order)) == 4
    position = {node: i for i, node in enumerate(order)}
    assert all(position[node] < position[child] for node in order for child in node.children)
    nodes["z"].backward()
    exact = math.cos(0.5) * 0.25 + math.sin(0.5) * 2 * 0.5
    assert nodes["x"].grad == pytest.approx(exact, rel=1e-12)


@pytest.mark.requirement("R-009")
@pytest.mark.parametrize("back_to_root", [True, False])
def test_a_cycle_is_rejected(back_to_root: bool) -> None:
    a = Value(2.0)
    b = a * 3
    root = b + 1
    a.children, a.slopes = (root if back_to_root else b,), (1.0,)
    with pytest.raises(GraphError, match="cycle"):
        root.backward()
    assert [a.grad, b.grad, root.grad] == [0, 0, 0]


@pytest.mark.requirement("R-010")
def test_gradients_add_up_until_zeroed() -> None:
    nodes = graphs.figure_1()
    nodes["L"].backward()
    once = {name: node.grad for name, node in nodes.items()}
    nodes["L"].backward()
    assert {name: node.grad for name, node in nodes.items()} == {name: 2 * g for name, g in once.items()}
    nodes["L"].zero_grad()
    assert not any(node.grad for node in nodes.values())
    nodes["L"].backward()
    assert {name: node.grad for name, node in nodes.items()} == once


@pytest.mark.requirement("R-011")
def test_a_nudge_along_the_gradient_raises_the_output() -> None:
    names = ("w1", "w2", "w3", "w6")
    nodes = graphs.figure_1()
    nodes["L"].backward()
    after = {
        step: graphs.figure_1(**{n: nodes[n].data + step * nodes[n].grad for n in names})["L"].data
        for step in (0.01, -0.01)
    }
    assert after[-0.01] < nodes["L"].data < after[0.01]


@pytest.mark.requirement("R-012")
@pytest.mark.parametrize("x", [0.3, 1.0, 2.7])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x**3,
        lambda x: x**0.5,
        lambda x: x**-2,
        lambda x: x**0,
        Value.exp,
        Value.log,
        Value.sin,
        Value.cos,
    ],
    ids=["cube", "root", "inverse square", "zeroth power", "exp", "log", "sin", "cos"],
)
def test_slopes_of_primitives(f: Callable[[Value], Value], x: float) -> None:
    assert_slope(f, x)


@pytest.mark.parametrize("n", [1, 2, 3, 4, -1, -3])
def test_whole_powers_of_negative_numbers(n: int) -> None:
    assert (Value(-1.5) ** n).data == pytest.approx((-1.5) ** n, rel=1e-12)
    assert_slope(lambda x: x**n, -1.5)


@pytest.mark.requirement("R-013")
@pytest.mark.parametrize("x", [-1.7, 0.4, 2.2])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sin() * x**2,
        lambda x: x.sin() / (x**2 + 1),
        lambda x: 1 / (2 + x.cos()),
        lambda x: 3 - x / 2 - (-x) * 5,
        lambda x: x * x**-1 * x.exp(),
    ],
)
def test_product_and_quotient_rules(f: Callable[[Value], Value], x: float) -> None:
    assert_slope(f, x)


@pytest.mark.requirement("R-014")
@pytest.mark.parametrize("x", [-2.0, -0.5, 0.5, 2.0])
@pytest.mark.parametrize("f", [Value.tanh, Value.sigmoid, Value.relu])
def test_activations(f: Callable[[Value], Value], x: float) -> None:
    exact = {Value.tanh: math.tanh(x), Value.sigmoid: 1 / (1 + math.exp(-x)), Value.relu: max(0.0, x)}
    assert f(Value(x)).data == pytest.approx(exact[f], rel=1e-12)
    assert_slope(f, x)


def test_tails_of_the_activations() -> None:
    assert Value(-800.0).sigmoid().data == 0.0 and Value(800.0).sigmoid().data == 1.0
    assert Value(-40.0).sigmoid().data == pytest.approx(math.exp(-40), rel=1e-12)
    assert slope(Value.relu, 0.0) == 0.0


@pytest.mark.requirement("R-015")
@pytest.mark.parametrize("x", [-0.8, 0.1, 1.3])
def test_five_functions_deep(x: float) -> None:
    assert_slope(lambda x: ((x * 1.5 + 0.3).tanh().exp() ** 2).sin(), x)


@given(st.lists(numbers, min_size=4, max_size=4))
def test_gradient_of_a_whole_expression(xs: list[float]) -> None:
    def expression(a: Value, b: Value, c: Value, d: Value) -> Value:
        shared = (a * b + c).tanh()
        return shared * d + (shared - a) ** 2 / (2 + d.sin()) + multiply(a, b, c, d).sigmoid()

    leaves = [Value(x) for x in xs]
    expression(*leaves).backward()
    numeric = gradient(lambda p: expression(*map(Value, p.tolist())).data, xs)
    np.testing.assert_allclose([leaf.grad for leaf in leaves], numeric, rtol=1e-6, atol=1e-6)


def test_numbers_mix_with_values_from_either_side() -> None:
    x = Value(4.0)
    assert [(2 + x).data, (2 - x).data, (2 * x).data, (2 / x).data] == [6, -2, 8, 0.5]
    assert (np.float64(2) * x).data == (np.int64(2) * x).data == 8
    assert sum([x, x, x]).data == 12


def test_repr_shows_name_value_gradient_and_operation() -> None:
    nodes = graphs.figure_1()
    nodes["L"].backward()
    assert repr(nodes["w5"]) == "Value(w5 = 4, grad=-2, op='+')"
    assert repr(Value(0.5)) == "Value(0.5, grad=0)"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: Value(0.0).log(), r"log: 0.0 \(must be > 0\)"),
        (lambda: Value(-1.0).log(), r"log: -1.0"),
        (lambda: Value(0.0) ** -1, r"pow: 0.0 \*\* -1"),
        (lambda: Value(0.0) ** 0.5, r"pow: 0.0 \*\* 0.5"),
        (lambda: Value(-8.0) ** (1 / 3), r"pow: -8.0"),
        (lambda: Value(1e200) ** 2, r"pow: 1e\+200 \*\* 2"),
        (lambda: Value(2.0) ** Value(3.0), r"pow: exponent Value\(3"),
        (lambda: Value(1.0) / 0, r"div: 1.0 / 0.0"),
        (lambda: 1 / Value(0.0), r"div: 1.0 / 0.0"),
        (lambda: Value(710.0).exp(), r"exp: 710.0 \(overflows"),
        (lambda: Value(1e308) * 10, r"\*: got inf"),
        (lambda: Value(float("nan")), r"Value: got nan"),
        (lambda: Value("3"), r"Value: got '3' \(must be one finite real number\)"),
        (lambda: Value(1.0) * [1.0], r"Value: got \[1.0\]"),
        (lambda: np.ones(2) * Value(1.0), r"Value: got array"),
    ],
)
def test_bad_input_names_the_value_and_the_rule(bad: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        bad()
    assert "\n" not in str(error.value) and isinstance(error.value, ChainruleError)
