"""Neuron, layer and MLP of Values: the worked numbers, and learning."""

from __future__ import annotations

import math

import pytest

from chainrule.errors import ConfigError, ShapeError
from chainrule.scalar import MLP, Layer, Neuron, Value, add, graphs
from tests.vectors import vector


def worked_mlp() -> tuple[MLP, list[Value], Value]:
    """The 2-3-1 network of seed 004 §5.2, ReLU then sigmoid; its hidden activations and its output."""
    given = vector("004-5.2-mlp-forward").inputs
    model = MLP([Layer(given["W1"], given["b1"], "relu"), Layer(given["W2"], given["b2"], "sigmoid")])
    hidden = model.layers[0](given["x"])
    (y,) = model.layers[1](hidden)
    assert y.data == model(given["x"])[0].data
    return model, hidden, y


@pytest.mark.requirement("R-016")
def test_worked_neuron() -> None:
    v = vector("004-5.1-neuron")
    y = Neuron(v.inputs["w"], v.inputs["b"], v.inputs["activation"])(v.inputs["x"])
    (z,) = y.children
    v.check({"z": z.data, "exp_neg_z": math.exp(-z.data), "y": y.data})
    same = graphs.neuron(v.inputs["w"], v.inputs["x"], v.inputs["b"])
    assert (same["z"].data, same["y"].data) == (z.data, y.data)


@pytest.mark.requirement("R-016")
def test_worked_mlp_forward() -> None:
    model, hidden, y = worked_mlp()
    z1 = [h.children[0] for h in hidden]
    biases = [neuron.bias.data for neuron in model.layers[0].neurons]
    got = {
        "W1x": [z.data - b for z, b in zip(z1, biases, strict=True)],
        "z1": [z.data for z in z1],
        "h1": [h.data for h in hidden],
        "z2": y.children[0].data,
        "y": y.data,
    }
    vector("004-5.2-mlp-forward").check(got)


@pytest.mark.requirement("R-016")
def test_worked_mlp_backward() -> None:
    model, hidden, y = worked_mlp()
    ((y - vector("004-5.4.4-delta2").inputs["target"]) ** 2 / 2).backward()
    first, second = model.layers
    (output,) = second.neurons
    (z2,) = y.children
    z1 = [h.children[0] for h in hidden]
    vector("004-5.4.4-delta2").check(z2.grad)
    vector("004-5.4.4-dW2").check({"dW2": [w.grad for w in output.weights], "db2": output.bias.grad})
    vector("004-5.4.4-dh1").check([h.grad for h in hidden])
    mask = [int(h.slopes[0]) for h in hidden]
    vector("004-5.4.4-delta1").check({"mask": mask, "delta1": [z.grad for z in z1]})
    dW1 = [[w.grad for w in neuron.weights] for neuron in first.neurons]
    vector("004-5.4.4-dW1").check({"dW1": dW1, "db1": [neuron.bias.grad for neuron in first.neurons]})


@pytest.mark.requirement("R-018")
def test_backward_of_a_layer_is_its_jacobian_transposed() -> None:
    v = vector("004-2.5.8-backprop")
    nodes = graphs.two_layers(*v.inputs["x"])
    nodes["L"].backward()
    h, x = [nodes["h1"], nodes["h2"]], [nodes["x1"], nodes["x2"]]
    v.check(
        {
            "h": [node.data for node in h],
            "L": nodes["L"].data,
            "grad_h": [node.grad for node in h],
            "grad_x": [node.grad for node in x],
        }
    )
    assert [list(node.slopes) for node in h] == v.inputs["J"]


@pytest.mark.requirement("R-019")
def test_a_layer_gives_gradients_for_weights_bias_and_input() -> None:
    v = vector("der-linear-backward")
    X, W, b = v.inputs["X"], v.inputs["W"], v.inputs["b"]
    layer = Layer([list(column) for column in zip(*W, strict=True)], b, "linear")  # one row per neuron
    inputs = [[Value(x) for x in row] for row in X]
    outputs = [layer(row) for row in inputs]
    graded = zip(outputs, v.inputs["grad"], strict=True)
    add(*(y * g for row, grads in graded for y, g in zip(row, grads, strict=True))).backward()
    dW = [[w.grad for w in neuron.weights] for neuron in layer.neurons]
    v.check(
        {
            "Y": [[y.data for y in row] for row in outputs],
            "dW": [list(row) for row in zip(*dW, strict=True)],
            "db": [neuron.bias.grad for neuron in layer.neurons],
            "dX": [[x.grad for x in row] for row in inputs],
        }
    )


def test_random_mlp_is_a_function_of_its_seed() -> None:
    a, b, c = (MLP.random([2, 4, 1], seed=s) for s in (1, 1, 2))
    assert [p.data for p in a.parameters()] == [p.data for p in b.parameters()]
    assert [p.data for p in a.parameters()] != [p.data for p in c.parameters()]
    assert len(a.parameters()) == (2 + 1) * 4 + (4 + 1) * 1
    assert [layer.neurons[0].activation for layer in a.layers] == ["tanh", "linear"]


def test_mlp_learns_exclusive_or() -> None:
    model = MLP.random([2, 4, 1], seed=0)
    data = [([0.0, 0.0], -1.0), ([0.0, 1.0], 1.0), ([1.0, 0.0], 1.0), ([1.0, 1.0], -1.0)]
    for _ in range(150):
        loss = add(*((model(x)[0] - target) ** 2 for x, target in data))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
    assert loss.data < 0.01
    assert all(model(x)[0].data * target > 0.5 for x, target in data)


def test_bad_networks() -> None:
    with pytest.raises(ShapeError, match="neuron: 3 inputs, 2 weights"):
        Neuron([1.0, 2.0])([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match="layer: 2 rows of weights, 1 biases"):
        Layer([[1.0], [2.0]], [0.0])
    with pytest.raises(ConfigError, match="activation 'softplus'"):
        Neuron([1.0], activation="softplus")
    with pytest.raises(ConfigError, match=r"MLP: sizes \[3\]"):
        MLP.random([3])
    with pytest.raises(ShapeError, match="neuron: 1 inputs, 2 weights"):
        graphs.neuron([1.0, 2.0], [1.0])
