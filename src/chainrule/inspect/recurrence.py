"""Gradients through time: the Jacobian of each step, their product, and what it does to a gradient on its way back.

    ds_T/ds_t = J_T J_T-1 ... J_t+1,    J_t = ds_t/ds_t-1       of a plain network J_t = diag(1 - h_t²) W_h

A product of many factors vanishes or explodes unless they are all near 1: seldom by chance, by construction along the
cell of an LSTM.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.errors import ShapeError
from chainrule.nn.recurrent import Recurrent

Floats = npt.NDArray[np.float64]


def step_jacobians(layer: Recurrent, x: npt.ArrayLike, state: tuple[Any, ...] | None = None) -> Floats:
    """x (T, X) -> ds_t/ds_t-1 of each step (T, S, S), of an LSTM with s = (h, c), so S = 2H

    >>> import numpy as np
    >>> from chainrule import nn
    >>> from chainrule.inspect.recurrence import step_jacobians
    >>> step_jacobians(nn.LSTM(3, 4), np.zeros((5, 3))).shape
    (5, 8, 8)
    """
    layer, x = _own(layer), _inputs(x)
    state = layer.start(1) if state is None else state
    S = sum(part.shape[-1] for part in state)
    jacobians = np.empty((len(x), S, S))
    for t in range(len(x)):
        # A copy of the step for every output, so that one backward pass gives all rows.
        before = tuple(Tensor(np.repeat(part, S, axis=0), requires_grad=True) for part in state)
        _, after = layer(Tensor(np.repeat(x[None, t : t + 1], S, axis=0)), before)
        ops.concat(*after, axis=-1).backward(np.eye(S))
        jacobians[t] = np.concatenate([part.grad for part in before], axis=-1)
        state = tuple(part.numpy()[:1] for part in after)
    return jacobians


def products(jacobians: Floats) -> Floats:
    """J (T, S, S) -> ds_T/ds_t for t = 0 .. T (T + 1, S, S): from the last step down, since order matters"""
    found = [np.eye(jacobians.shape[-1])]
    for J in jacobians[::-1]:
        found.append(found[-1] @ J)
    return np.array(found[::-1])


def cell_path(jacobians: Floats) -> Floats:
    """The direct way along the cell of an LSTM, dc_T/dc_t with h held still: products of diag(f), (T + 1, H, H)

    The total derivative, a block of `products`, has more terms: the gates see the cell through h.
    """
    H = jacobians.shape[-1] // 2
    return products(jacobians[:, H:, H:])


def gradient_norms(layer: Recurrent, x: npt.ArrayLike, gradient: npt.ArrayLike | None = None) -> Floats:
    """x (T, X) -> norms of the gradients of the states s_0 .. s_T (T + 1,), by back-propagation through time

    The gradient of the last output h_T is given, by default all ones.
    """
    layer, x = _own(layer), _inputs(x)
    states = [tuple(Tensor(part, requires_grad=True) for part in layer.start(1))]
    for t in range(len(x)):
        _, state = layer(Tensor(x[None, t : t + 1]), states[-1])
        for part in state:
            part.retain_grad()
        states.append(state)
    seed = np.ones(layer.n_hidden) if gradient is None else np.asarray(gradient, np.float64)
    states[-1][0].backward(seed[None])
    return np.array([np.linalg.norm([p.grad for p in state if p.grad is not None]) for state in states])


def _own(layer: Recurrent) -> Recurrent:
    """A copy in float64 that learns nothing: the layer itself stays as it is."""
    return copy.deepcopy(layer).to(np.float64).freeze()


def _inputs(x: npt.ArrayLike) -> Floats:
    array = np.asarray(x, np.float64)
    if array.ndim != 2 or len(array) == 0:
        raise ShapeError(f"recurrence: x has shape {array.shape} (must be (T, X) with T at least 1)")
    return array
