"""Logits made by hand: what softmax makes of them, and what they cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chainrule import ops


class HandMade(NamedTuple):
    """Logits of three tokens, the last one right; their softmax, and the loss."""

    name: str
    logits: tuple[float, ...]
    p: tuple[float, ...]
    loss: float


LABEL = 2
HAND_MADE = {
    "zeros": (0.0, 0.0, 0.0),
    "uniform in [0, 1]": (0.4946, 0.1297, 0.2467),
    "sure, and right": (0.0, 0.0, 5.0),
    "sure, and wrong": (0.0, 5.0, 0.0),
    "normal, spread 1": (1.366, 1.0108593536974988, 0.24793383684244752),
    "normal, spread 10": (11.958, -10.3641, 9.7887),
    "normal, spread 100": (-212.3578, -144.7072, 6.0214),
}


def hand_made_logits() -> list[HandMade]:
    """The wider the logits, the more the loss depends on luck."""
    rows = []
    for name, logits in HAND_MADE.items():
        x = np.array([logits])
        p, loss = ops.softmax(x)[0], float(ops.cross_entropy(x, targets=np.array([LABEL])))
        rows.append(HandMade(name, logits, tuple(p.tolist()), loss))
    return rows
