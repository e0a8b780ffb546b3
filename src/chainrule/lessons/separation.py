"""What a line cannot separate, and what a network makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops, random
from chainrule.autograd import Tensor, no_grad
from chainrule.nn import MLP
from chainrule.optim import Adam
from chainrule.types import Array

XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
LABELS = np.array([0, 1, 1, 0])

DEFECTS = np.array([[1, 1], [1.6, 1.6], [2.2, 2.2]])  # (size, weight) of parts: as heavy as they are large
SOUND = np.array([[2.5, 1], [3, 0.8], [1, 2.6], [0.8, 2.2]])  # light or heavy for their size
W1, B1 = np.array([[1, 0], [0, 1], [-0.5, 0.5]]), np.array([0, 0, 1.5])
W2 = np.array([[0.3, 0.2, 0.1], [0.1, 0.1, 0.8]])
THRESHOLD = 1.1


def best_line(points: Array, labels: Array) -> tuple[Array, float, float]:
    """The line w · x = b with the most labels right, over a grid of directions and offsets: (w, b, fraction right)"""
    angles = np.linspace(0, 2 * np.pi, 360, endpoint=False)
    directions = np.stack([np.cos(angles), np.sin(angles)])  # (2, angles)
    offsets = np.linspace(-2, 2, 161)
    heights = (points @ directions)[:, :, None] - offsets  # (points, angles, offsets)
    right = ((heights > 0) == (labels == 1)[:, None, None]).mean(axis=0)
    clear = np.abs(heights).min(axis=0)  # of equally good lines the one farthest from every point
    i, j = np.unravel_index(np.where(right == right.max(), clear, -1).argmax(), right.shape)
    return directions[:, i], float(offsets[j]), float(right[i, j])


def trained(points: Array, labels: Array) -> Any:
    """A function points (..., 2) -> score (...), above 0 for label 1: a network fitted to the labels."""
    with random.seeded(1):
        net = MLP([2, 8, 2], "tanh")
    optimizer = Adam(net.parameters(), 0.05)
    for _ in range(300):
        optimizer.zero_grad()
        ops.cross_entropy(net(Tensor(points)), targets=labels).backward()
        optimizer.step()

    def score(x: Array) -> Array:
        with no_grad():
            logits: Array = net(Tensor(x)).numpy()
        return logits[..., 1] - logits[..., 0]

    return score


def features(parts: Array) -> Array:
    """parts (n, 2) -> the two features of the worked feed-forward network (n, 2)"""
    return np.maximum(parts @ W1.T + B1, 0) @ W2.T
