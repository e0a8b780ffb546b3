"""Initializers: how a new parameter is drawn.        Derivation: docs/derivations/initialization.md

init(shape, rng) -> array          a matrix has the shape (out, in); options are keywords:
Linear(3, 4, init=partial(kaiming_normal, activation="tanh"))
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from chainrule import random
from chainrule.autograd import Param, no_grad
from chainrule.autograd.abstract import abstract
from chainrule.autograd.mode import switched
from chainrule.autograd.stored import StoredParam
from chainrule.autograd.types import Array, Shape
from chainrule.errors import ConfigError
from chainrule.nn.activation import Activation, activation

Init: TypeAlias = Callable[[Shape, np.random.Generator], Array]


def parameter(init: Init, shape: Shape, *, decay: bool | None = None) -> Param:
    """A new parameter drawn by `init`.

    Each parameter has a random stream of its own, numbered by the order of construction since `cr.seed`: the
    same seed and the same model give the same numbers, and another size of one layer leaves the others alone.
    """
    for size in shape:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ConfigError(f"parameter: shape {shape} (each size must be an integer, at least 1)")
    if _drawing.stored:
        return StoredParam(shape, decay=len(shape) >= 2 if decay is None else decay)
    if _drawing.abstract or _drawing.off:
        param = Param(0.0, decay=len(shape) >= 2 if decay is None else decay)
        param.array = abstract(shape) if _drawing.abstract else np.zeros(shape, np.float32)
        return param
    return Param(init(shape, random.from_key(random.next_key("init"))), decay=decay)


def buffer(value: float, shape: Shape) -> Array:
    """A new array of a layer's `buffers`, all entries `value`; of a model to be counted it takes no memory."""
    return abstract(shape) if _drawing.abstract else np.full(shape, value, np.float32)


class _Drawing(threading.local):
    off = False
    abstract = False
    stored = False


_drawing = _Drawing()


def unfilled() -> AbstractContextManager[Any]:
    """Make a model whose weights are loaded at once: its parameters are 0, and no random numbers are drawn for them."""
    return switched(_drawing, "off", True)


def abstract_parameters() -> AbstractContextManager[Any]:
    """Make a model to be counted: its parameters have shapes and no values, so it takes no memory at any size."""
    return switched(_drawing, "abstract", True)


def stored_parameters() -> AbstractContextManager[Any]:
    """Make a model whose parameters are read when they are used: each wants its `read`."""
    return switched(_drawing, "stored", True)


def zeros(shape: Shape, rng: np.random.Generator) -> Array:
    """All 0: biases."""
    return np.zeros(shape)


def ones(shape: Shape, rng: np.random.Generator) -> Array:
    """All 1: the gains of a normalization."""
    return np.ones(shape)


def normal(shape: Shape, rng: np.random.Generator, *, std: float = 1.0) -> Array:
    """N(0, std²)."""
    return rng.normal(0.0, std, size=shape)


def uniform(shape: Shape, rng: np.random.Generator, *, bound: float = 1.0) -> Array:
    """Uniform in [-bound, bound]; its standard deviation is bound / √3."""
    return rng.uniform(-bound, bound, size=shape)  # [IN.5]


def xavier_uniform(shape: Shape, rng: np.random.Generator, *, gain: float = 1.0) -> Array:
    """Uniform with the spread of `xavier_normal`: ± gain √(6 / (fan_in + fan_out))."""
    return uniform(shape, rng, bound=math.sqrt(3.0) * _xavier_std(shape, gain))


def xavier_normal(shape: Shape, rng: np.random.Generator, *, gain: float = 1.0) -> Array:
    """N(0, gain² 2 / (fan_in + fan_out)): between keeping activations and keeping gradients."""
    return normal(shape, rng, std=_xavier_std(shape, gain))


def kaiming_uniform(
    shape: Shape, rng: np.random.Generator, *, activation: str | Activation = "relu"
) -> Array:
    """Uniform with the spread of `kaiming_normal`."""
    return uniform(shape, rng, bound=math.sqrt(3.0) * _kaiming_std(shape, activation))


def kaiming_normal(shape: Shape, rng: np.random.Generator, *, activation: str | Activation = "relu") -> Array:
    """N(0, (gain / √fan_in)²): keeps the spread of activations through layers that end in `activation`."""
    return normal(shape, rng, std=_kaiming_std(shape, activation))


def fans(shape: Shape) -> tuple[int, int]:
    """(fan_in, fan_out) of a matrix stored (out, in)."""
    if len(shape) != 2 or 0 in shape:
        raise ConfigError(f"init: shape {shape} has no fan-in and fan-out (must be (out, in), both positive)")
    return shape[1], shape[0]


def gain(f: str | Activation) -> float:
    """1 / √E[f(Z)²], Z ~ N(0, 1): the factor that makes the output of `f` as spread as its input.

    >>> from chainrule.nn.init import gain
    >>> round(gain("tanh"), 6), round(gain("relu") ** 2, 6)
    (1.592537, 2.0)
    """
    if isinstance(f, str):
        return _named_gain(f)
    return 1.0 / math.sqrt(expectation(lambda z: _values(f, z) ** 2))  # [IN.2]


@cache
def _named_gain(name: str) -> float:
    return gain(activation(name))


def expectation(f: Callable[[Array], Array]) -> float:
    """E[f(Z)] for Z ~ N(0, 1), by the trapezoid rule over ± 14 standard deviations.

    A step of 1e-4 gives 1e-9 even for functions with a kink; for smooth ones the rule is exact.
    """
    h = 1e-4
    z = h * np.arange(-140_000, 140_001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return float(h * np.sum(f(z) * density))  # both ends are 0: the trapezoid rule is a plain sum    [IN.3]


TORCH_GAINS = {
    "linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2.0),
    "leaky_relu": math.sqrt(2 / (1 + 0.01**2))
}  # fmt: skip


def torch_gain(name: str) -> float:
    """The constant other libraries use for this activation: 5/3 for tanh, where `gain` gives 1.5925."""
    if name not in TORCH_GAINS:
        raise ConfigError(f"torch_gain: {name!r} (must be one of {', '.join(TORCH_GAINS)})")
    return TORCH_GAINS[name]


def _xavier_std(shape: Shape, gain: float) -> float:
    return gain * math.sqrt(2.0 / sum(fans(shape)))  # [IN.4]


def _kaiming_std(shape: Shape, activation: str | Activation) -> float:
    return gain(activation) / math.sqrt(fans(shape)[0])  # [IN.1]


def _values(function: Activation, z: Array) -> Array:
    # As a column: an activation that mixes features, such as softmax, sees one feature at a time.
    with no_grad():
        y: Any = function(z[:, None])
    return np.asarray(y)[:, 0]
