"""The scalar engine and the tensor engine give the same numbers and the same gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.scalar import MLP, Layer, Value, add, graphs, multiply
from tests.vectors import vector


def sin(x: Any) -> Any:
    return x.sin() if isinstance(x, Value) else cr.ops.sin(x)


def cos(x: Any) -> Any:
    return x.cos() if isinstance(x, Value) else cr.ops.cos(x)


# Every operation of the scalar engine, in forms that keep numbers small and stay inside the domains.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a.tanh() * b,
    "/": lambda a, b: a / (b.sigmoid() + 0.5),
    "number first": lambda a, b: 2 * a + (1 - b) / 3 + 1 / (2 + a.sigmoid()),
    "neg": lambda a, b: -a,
    "**3": lambda a, b: a.tanh() ** 3,
    "**-0.5": lambda a, b: (a.sigmoid() + 1) ** -0.5,
    "exp": lambda a, b: a.tanh().exp(),
    "log": lambda a, b: (b.sigmoid() + 0.1).log(),
    "sin": lambda a, b: sin(a),
    "cos": lambda a, b: cos(b),
    "tanh": lambda a, b: a.tanh(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "relu": lambda a, b: a.relu(),
}

operands = st.integers(0, 50)
programs = st.lists(st.tuples(st.sampled_from(list(STEPS)), operands, operands), max_size=15)


def run(program: list[tuple[str, int, int]], leaves: list[Any]) -> Any:
    made = list(leaves)
    for name, i, j in program:
        made.append(STEPS[name](made[i % len(made)], made[j % len(made)]))
    total = made[-1]
    for leaf in leaves:
        total = total + leaf * 0.1  # so that every leaf is used
    return total


def assert_same(program: list[tuple[str, int, int]], xs: list[float]) -> None:
    values = [Value(x) for x in xs]
    tensors = [cr.Tensor(np.array(x), requires_grad=True) for x in xs]
    y, t = run(program, values), run(program, tensors)
    y.backward()
    t.backward()
    np.testing.assert_allclose(t.item(), y.data, rtol=1e-12, atol=1e-14)
    got = [float(tensor.grad) for tensor in tensors]
    np.testing.assert_allclose(got, [v.grad for v in values], rtol=1e-11, atol=1e-13)


@pytest.mark.requirement("R-017")
@given(programs, st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=2, max_size=4))
def test_any_expression(program: list[tuple[str, int, int]], xs: list[float]) -> None:
    assert_same(program, xs)


@pytest.mark.requirement("R-017")
@pytest.mark.parametrize("name", STEPS)
def test_each_operation(name: str) -> None:
    assert_same([(name, 0, 1), (name, 1, 0), (name, 2, 3)], [0.7, -1.3])


@pytest.mark.requirement("R-017")
def test_reductions_are_n_ary_nodes() -> None:
    xs = [0.5, -2.0, 0.0, 3.0]
    values = [Value(x) for x in xs]
    tensor = cr.Tensor(np.array(xs), requires_grad=True)
    (add(*values) + multiply(*values)).backward()
    product = tensor[0] * tensor[1] * tensor[2] * tensor[3]
    (tensor.sum() + product).backward()
    np.testing.assert_allclose(tensor.grad, [v.grad for v in values], rtol=1e-12)


@pytest.mark.requirement("R-017")
def test_intermediate_values_and_gradients_agree() -> None:
    """The graph of seed 002 Figure 1, node by node: values, and gradients of the inner nodes too."""
    v = vector("der-graph-L")
    leaves = {n: cr.Tensor(np.array(v.inputs[n]), requires_grad=True) for n in ("w1", "w2", "w3", "w6")}
    nodes = dict(leaves)
    nodes["w4"] = nodes["w1"] * nodes["w2"]
    nodes["w5"] = nodes["w3"] + nodes["w4"]
    nodes["L"] = nodes["w6"] * nodes["w5"]
    for name in ("w4", "w5"):
        nodes[name].retain_grad()
    nodes["L"].backward()
    scalar = graphs.figure_1()
    scalar["L"].backward()
    for name, node in nodes.items():
        assert node.item() == scalar[name].data
        assert name == "L" or float(node.grad) == scalar[name].grad


@pytest.mark.requirement("R-016", "R-017")
@pytest.mark.parametrize(("hidden", "output"), [("relu", "sigmoid"), ("tanh", "linear"), ("sigmoid", "tanh")])
def test_network_of_values_is_the_array_network(hidden: str, output: str) -> None:
    model = MLP.random([3, 5, 4, 2], hidden, output, seed=7)
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))

    rows = [model(x.tolist()) for x in X]
    outputs = [y for row in rows for y in row]
    loss = add(*((y - t) ** 2 for y, t in zip(outputs, T.flat, strict=True))) / T.size
    loss.backward()

    params = []
    h = cr.Tensor(X)
    for layer in model.layers:
        W = cr.Tensor(np.array([[w.data for w in n.weights] for n in layer.neurons]), requires_grad=True)
        b = cr.Tensor(np.array([n.bias.data for n in layer.neurons]), requires_grad=True)
        h = cr.ops.linear(h, W, b)
        activation = layer.neurons[0].activation
        h = h if activation == "linear" else getattr(h, activation)()
        params.append((W, b))
    array_loss = ((h - T) ** 2).mean()
    array_loss.backward()

    np.testing.assert_allclose(h.numpy(), [[y.data for y in row] for row in rows], rtol=1e-12)
    assert array_loss.item() == pytest.approx(loss.data, rel=1e-12)
    for layer, (W, b) in zip(model.layers, params, strict=True):
        dW = [[w.grad for w in neuron.weights] for neuron in layer.neurons]
        np.testing.assert_allclose(W.grad, dW, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(b.grad, [n.bias.grad for n in layer.neurons], rtol=1e-10, atol=1e-13)


@pytest.mark.requirement("R-016", "R-018")
def test_worked_network_in_arrays() -> None:
    """The network of seed 004 §5.2 and §5.4.4 once more, now with arrays."""
    given = vector("004-5.2-mlp-forward").inputs
    W1, b1, W2, b2 = (cr.Tensor(np.array(given[k]), requires_grad=True) for k in ("W1", "b1", "W2", "b2"))
    h = cr.ops.linear(cr.Tensor(np.array(given["x"])), W1, b1).relu()
    h.retain_grad()
    y = cr.ops.linear(h, W2, b2).sigmoid()
    ((y - vector("004-5.4.4-delta2").inputs["target"]) ** 2 / 2).sum().backward()
    vector("004-5.2-mlp-forward").check({"h1": h, "y": y.item()}, keys=("h1", "y"))
    vector("004-5.4.4-dW2").check({"dW2": W2.grad[0], "db2": float(b2.grad[0])})
    vector("004-5.4.4-dh1").check(h.grad)
    vector("004-5.4.4-dW1").check({"dW1": W1.grad, "db1": b1.grad})


@pytest.mark.requirement("R-019")
def test_linear_op_returns_three_gradients() -> None:
    v = vector("der-linear-backward")
    X, W, b, dY = (np.array(v.inputs[k]) for k in ("X", "W", "b", "grad"))
    Y, saved = cr.ops.linear.forward(X, W, b, layout="in_out")
    dX, dW, db = cr.ops.linear.backward(dY, saved, (True, True, True))
    v.check({"Y": Y, "dW": dW, "db": db, "dX": dX})
    layer = Layer(W.T.tolist(), b.tolist(), "linear")
    np.testing.assert_allclose(Y, [[y.data for y in layer(row)] for row in X.tolist()], rtol=1e-12)
