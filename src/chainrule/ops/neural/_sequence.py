"""What the recurrent networks over a sequence share: sizes, examples, and the matmuls before and after the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.op import Examples
from chainrule.autograd.types import Array, Grads, Needs, Saved, Work
from chainrule.errors import ShapeError
from chainrule.ops._util import normal, product_into, rows, sum_lead
from chainrule.ops.arrays.shape import concat
from chainrule.ops.neural import recurrent
from chainrule.ops.neural.recurrent import Bias

Pair: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]  # forward and backward


def check(op: str, gates: int, x: Array, state: Array, W_x: Array, W_h: Array, *biases: Bias) -> None:
    if x.ndim != 3 or x.shape[1] == 0:
        raise ShapeError(f"{op}: x has shape {x.shape} (must be (B, T, X) with T at least 1)")
    recurrent.check_sizes(op, gates, x[:, 0], state, W_x, W_h, *biases)


def project(x: Array, W_x: Array, b: Bias) -> Array:
    """x W_xᵀ + b for all steps in one matmul: (B, T, gates·H)"""
    a = rows(x) @ W_x.T  # [RC.20]
    return (a if b is None else a + b).reshape(*x.shape[:2], len(W_x))


def states_before(h: Array, y: Array, out: Array | None = None) -> Array:
    """The state before each step: h, then y without its last step, (B, T, H)"""
    return np.concatenate((h[:, None], y[:, :-1]), axis=1, out=out)


def backwards(steps: list[Any]) -> Array:
    """Steps collected from the last to the first, in the order of time: (B, T, ...)"""
    return np.stack(steps[::-1], axis=1)


# B, T, X, H of the examples
SIZES = ((3, 4, 2, 5), (1, 1, 7, 1), (2, 3, 1, 7), (7, 2, 5, 16), (2, 3, 33, 65))


def examples(rng: np.random.Generator, gates: int, states: int) -> Iterator[list[Array]]:
    """x, the states, W_x, W_h and perhaps b; weights scaled so that states stay moderate"""
    for B, T, X, H in SIZES:
        n = gates * H
        weights = [normal(rng, n, X) / X**0.5, normal(rng, n, H) / H**0.5, normal(rng, n)]
        inputs = [normal(rng, B, T, X), *(normal(rng, B, H) for _ in range(states))]
        yield [*inputs, *weights[: 2 if B == 1 else 3]]


def _composed(cell: Op, states: int) -> Callable[..., Any]:
    """The composition from cells with this many states, their outputs joined."""

    def composed(x: Any, *rest: Any, **constants: Any) -> Any:
        state, weights = rest[:states], rest[states:]
        outputs = []
        for t in range(x.shape[1]):
            after: Any = cell(x[:, t], *state, *weights, **constants)
            state = after if isinstance(after, tuple) else (after,)
            outputs.append(state[0].reshape(x.shape[0], 1, state[0].shape[-1]))  # (B, 1, H)
        return concat(*outputs, axis=1), *state

    return composed


def _abstract(op: str, gates: int, states: int) -> Callable[..., Any]:
    """The forward pass on shapes alone. Gates are saved by LSTM and GRU, with c or, in PyTorch's GRU, u_n."""

    def abstract_forward(x: Array, *rest: Any, reset_after: bool = False) -> tuple[Any, Saved]:
        h, *weights = rest[0], *rest[states:]
        check(op, gates, x, h, *weights)
        y = abstract((*x.shape[:2], h.shape[1]), x.dtype)
        saved: Saved = (x, *rest[: states + 2])
        if gates > 1:
            beside = abstract(y.shape, x.dtype) if states == 2 or reset_after else None
            saved += (abstract((*x.shape[:2], len(weights[0])), x.dtype), beside)
        return (y, *(abstract(h.shape, x.dtype) for _ in range(states))), (*saved, y)

    return abstract_forward


def _cost(states: int) -> Callable[..., Work]:
    def cost(needs: Needs, *inputs: Any, reset_after: bool = False) -> Work:
        B, T, _ = inputs[0].shape
        W_x, W_h = (2 * B * T * W.size for W in inputs[states + 1 : states + 3])
        dW_x, dW_h = (bool(need) for need in needs[states + 1 : states + 3])
        # Backward goes through every state, needed or not.
        return Work(W_x + W_h, W_x * (bool(needs[0]) + dW_x) + W_h * (1 + dW_h))

    return cost


def sequence_op(
    cell: Op, gates: int, states: int, pair: Pair, native_pair: Pair, example: Examples | None = None
) -> Op:
    """The op over x, `states` first states, W_x, W_h and biases, whose steps are those of `cell`."""
    name = cell.name.replace("_cell", "_sequence")

    def native_forward(x: Array, *rest: Any, **constants: Any) -> Any:
        one_step = x.ndim == 3 and x.shape[1] == 1  # packing W_h is not worth it
        return (pair[0] if one_step else native_pair[0])(x, *rest, **constants)

    def plain(rng: np.random.Generator) -> Iterator[Example]:
        return (Example(tuple(inputs)) for inputs in examples(rng, gates, states))

    return Op(
        name, *pair, example or plain, composed=_composed(cell, states), native=(native_forward, native_pair[1]),
        abstract=_abstract(name, gates, states), cost=_cost(states),
    )  # fmt: skip


def grads(
    needs: Needs, x: Array, h: Array, W_x: Array, W_h: Array, y: Array, da: Array, *dstates: Array
) -> Grads:
    """The gradients of x, the first states, W_x, W_h and b, from da (B, T, gates·H), of what goes into the gates"""
    need_x, *need_states, need_W_x, need_W_h, need_b = needs
    return (
        da @ W_x if need_x else None,
        *(dstate if need else None for dstate, need in zip(dstates, need_states, strict=True)),
        recurrent.weight_grad(da, x) if need_W_x else None,  # one matmul over all B T rows    [RC.22]
        recurrent.weight_grad(da, states_before(h, y)) if need_W_h else None,
        sum_lead(da) if need_b else None,
    )


# -- shared by the native pairs, whose kernels do only the loop over time ------------------------------------------


def native_project(x: Array, W_x: Array, b: Bias) -> Array:
    return native.matmul(rows(x), W_x.T, bias=b).reshape(*x.shape[:2], len(W_x))  # [RC.20]


def native_times(da: Array, W_x: Array) -> Array:
    return native.matmul(rows(da), W_x).reshape(*da.shape[:2], W_x.shape[1])


def native_weight_grad(need: Any, W: Array, *pairs: tuple[Array, Array]) -> Array:
    """dW = daᵀ x over all B T rows, for each pair a block of its rows; added in place if it has one    [RC.22]"""
    dW, adds = product_into(need, W)
    first = 0
    for da, x in pairs:
        last = first + da.shape[-1]
        native.matmul(rows(da).T, rows(x), out=dW[first:last], accumulate=adds)
        first = last
    return dW


def native_before(h: Array, y: Array) -> Array:
    """The state before each step, (B, T, H)"""
    before, copy = native.empty_like(y), native.kernels().copy
    copy(before[:, 0], h)
    copy(before[:, 1:], y[:, :-1])
    return before


def native_without_middle(sums: Array, first: int) -> Array:
    """The first numbers of `sums` and as many of the last ones as make 3 H of 4 H: without those of da_n"""
    H = len(sums) - first - (len(sums) - first) // 2
    found, copy = native.empty((first + H,)), native.kernels().copy
    copy(found[:first], sums[:first])
    copy(found[first:], sums[-H:])
    return found


def native_sums(da: Array) -> Array:
    sums = native.cleared(da.shape[-1:])
    native.kernels().column_sums(sums, rows(da))
    return sums


def native_grads(
    needs: Needs, x: Array, h: Array, W_x: Array, W_h: Array, y: Array, da: Array, *dstates: Array
) -> Grads:
    need_x, *need_states, need_W_x, need_W_h, need_b = needs
    return (
        native_times(da, W_x) if need_x else None,
        *(dstate if need else None for dstate, need in zip(dstates, need_states, strict=True)),
        native_weight_grad(need_W_x, W_x, (da, x)) if need_W_x else None,
        native_weight_grad(need_W_h, W_h, (da, native_before(h, y))) if need_W_h else None,
        native_sums(da) if need_b else None,
    )
