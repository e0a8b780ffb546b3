"""Gradients through time in random recurrent networks: they vanish, explode, and what clipping does about it."""

from __future__ import annotations

import numpy as np

from chainrule import random
from chainrule.autograd import Param, Parameters, Tensor
from chainrule.inspect.recurrence import Floats, gradient_norms
from chainrule.nn import LSTM, RNN
from chainrule.optim import clip_global_norm
from chainrule.random import generator

STEPS, WIDTH = 16, 32
T = 50  # steps of `ratios` and `clipped`


def random_rnn(scale: float, width: int = WIDTH, seed: int = 0) -> RNN:
    """A plain network that reads its input as it is; entries of W_h from N(0, scale²/width).

    At scale 1 the largest eigenvalue of W_h is near 1: a network without tanh would keep its gradients.
    """
    layer = RNN(width, width).to(np.float64)
    layer.weight_x.data[...] = np.eye(width)
    rng = generator("random rnn", seed=seed)
    layer.weight_h.data[...] = rng.normal(0, scale / np.sqrt(width), size=(width, width))
    return layer


def ratios(scale: float) -> Floats:
    """How a gradient grows on its way from step T to each step: ‖dh_t‖/‖dh_T‖ of nine random networks (9, T + 1)"""
    found = []
    for seed in range(9):
        rng = generator("inputs", seed=seed)
        x, gradient = rng.normal(0, 0.5, size=(T, WIDTH)), rng.normal(size=WIDTH)
        norms = gradient_norms(random_rnn(scale, seed=seed), x, gradient)
        found.append(norms / norms[-1])
    return np.array(found)


def clipped(scale: float, limit: float = 1.0) -> tuple[float, float]:
    """The norm of the gradient of h_0 of a random network before and after clipping to `limit`.

    Clipping makes a large gradient small; it makes no small gradient large.
    """
    layer = random_rnn(scale).freeze()
    x = generator("inputs", seed=0).normal(0, 0.5, size=(1, T, WIDTH))
    start = Param(np.zeros((1, WIDTH)), "h_0", dtype=np.float64)
    block = Parameters([("h_0", start)])
    _, (last,) = layer(Tensor(x), (start,))
    last.backward(np.ones((1, WIDTH)))
    before = clip_global_norm(block, limit)
    return before, float(np.linalg.norm(block.grad))


def compared() -> dict[str, Floats]:
    """‖∂L/∂s_t‖/‖∂L/∂s_T‖ at the steps 1 .. 16 of three networks that read the same inputs."""
    with random.seeded(0):
        lstm = LSTM(WIDTH, WIDTH)
    networks = {
        "W$_h$ of scale 3: explodes": random_rnn(3.0),
        "W$_h$ of scale 1: vanishes": random_rnn(1.0),
        "LSTM, forget bias 1: fades slowest": lstm,
    }
    x = generator("inputs", seed=0).normal(0, 0.5, size=(STEPS, WIDTH))
    found = {name: gradient_norms(layer, x) for name, layer in networks.items()}
    return {name: norms[1:] / norms[-1] for name, norms in found.items()}
