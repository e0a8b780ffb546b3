"""A neuron, a layer and a multilayer perceptron made of Values.

A neuron is y = f(w1 x1 + ... + wn xn + b); a layer is several neurons with the same inputs; a multilayer
perceptron is layers one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from chainrule.errors import ConfigError, ShapeError
from chainrule.random import generator
from chainrule.scalar.engine import Value, add, as_value

ACTIVATIONS: dict[str, Callable[[Value], Value]] = {
    "linear": lambda z: z,
    "relu": Value.relu,
    "sigmoid": Value.sigmoid,
    "tanh": Value.tanh,
}


class Neuron:
    """n inputs -> one output; weights and bias are given as numbers.

    >>> neuron = Neuron([0.4, 0.6], bias=-0.5, activation="sigmoid")
    >>> round(neuron([0.5, 0.8]).data, 3)
    0.545
    """

    def __init__(self, weights: Sequence[float], bias: float = 0.0, activation: str = "tanh") -> None:
        if activation not in ACTIVATIONS:
            raise ConfigError(f"neuron: activation {activation!r} (must be one of {', '.join(ACTIVATIONS)})")
        self.weights = [Value(w, label=f"w{i}") for i, w in enumerate(weights, 1)]
        self.bias = Value(bias, label="b")
        self.activation = activation

    def __call__(self, inputs: Sequence[Value | float]) -> Value:
        if len(inputs) != len(self.weights):
            raise ShapeError(f"neuron: {len(inputs)} inputs, {len(self.weights)} weights (must be equal)")
        z = add(*(w * x for w, x in zip(self.weights, inputs, strict=True)), self.bias)
        return ACTIVATIONS[self.activation](z)

    def parameters(self) -> list[Value]:
        return [*self.weights, self.bias]


class Layer:
    """n inputs -> m outputs; `weights` has one row of n numbers per neuron."""

    def __init__(
        self, weights: Sequence[Sequence[float]], biases: Sequence[float], activation: str = "tanh"
    ) -> None:
        if len(weights) != len(biases):
            raise ShapeError(f"layer: {len(weights)} rows of weights, {len(biases)} biases (must be equal)")
        self.neurons = [Neuron(w, b, activation) for w, b in zip(weights, biases, strict=True)]

    def __call__(self, inputs: Sequence[Value | float]) -> list[Value]:
        return [neuron(inputs) for neuron in self.neurons]

    def parameters(self) -> list[Value]:
        return [p for neuron in self.neurons for p in neuron.parameters()]


class MLP:
    """Several layers in sequence.

    >>> model = MLP.random([2, 3, 1], seed=0)
    >>> len(model([1.0, 0.5])), len(model.parameters())
    (1, 13)
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = list(layers)

    @classmethod
    def random(
        cls, sizes: Sequence[int], activation: str = "tanh", output: str = "linear", seed: int | None = None
    ) -> MLP:
        """Sizes from input to output; weights N(0, 1/inputs), so that outputs have the variance of the inputs."""
        if len(sizes) < 2 or min(sizes) < 1:
            raise ConfigError(f"MLP: sizes {list(sizes)} (must be two or more numbers, each at least 1)")
        layers = []
        for i, (n_in, n_out) in enumerate(pairwise(sizes)):
            weights = generator("scalar init", i, seed=seed).normal(0.0, n_in**-0.5, size=(n_out, n_in))
            last = i == len(sizes) - 2
            layers.append(Layer(weights.tolist(), [0.0] * n_out, output if last else activation))
        return cls(layers)

    def __call__(self, inputs: Sequence[Value | float]) -> list[Value]:
        hidden = [as_value(x) for x in inputs]
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden

    def parameters(self) -> list[Value]:
        return [p for layer in self.layers for p in layer.parameters()]

    def zero_grad(self) -> None:
        """Set the gradient of every parameter to 0; `backward` adds to it."""
        for p in self.parameters():
            p.grad = 0.0
