"""Run a model under `cr.capture()` and leave it as it was; the model does not know that it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule import random
from chainrule.autograd import Tensor, capture, no_grad
from chainrule.autograd.capture import Capture
from chainrule.nn import Layer

Loss = Callable[..., Tensor]


@contextmanager
def untouched(model: Layer) -> Iterator[None]:
    """Gradients, buffers, modes and the random stream are the same afterwards."""
    params = model.parameters()
    grad = params.grad.copy()
    views = [(param, param.grad) for param in params.values()]
    buffers = [(buffer, buffer.copy()) for _, buffer in model.named_buffers()]
    try:
        with _same_modes(model), random.replay(random.position()):
            yield
    finally:
        params.grad[...] = grad
        for param, view in views:
            param.grad = view
        for buffer, before in buffers:
            buffer[...] = before


@contextmanager
def _same_modes(model: Layer) -> Iterator[None]:
    """Every layer is in the same mode afterwards."""
    modes = [(layer, layer.training) for _, layer in model.named_layers()]
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training


@contextmanager
def evaluating(model: Layer) -> Iterator[None]:
    """Evaluation mode without gradients; every layer is in the same mode afterwards."""
    with _same_modes(model), no_grad():
        model.eval()
        yield


@contextmanager
def frozen(model: Layer) -> Iterator[None]:
    """No parameter gets a gradient; each learns as before afterwards."""
    learning = [param for _, param in model.named_parameters() if param.requires_grad]
    try:
        for param in learning:
            param.requires_grad = False
        yield
    finally:
        for param in learning:
            param.requires_grad = True


def run(
    model: Any, batch: tuple[Any, ...], names: tuple[str, ...], loss: Loss | None = None
) -> tuple[float, Capture]:
    """Forward and backward in training mode: the loss, and the calls of the ops in `names`.

    The gradients of the parameters are left in place: call it inside `untouched`.
    """
    model.train()
    model.parameters().zero_grad()
    with np.errstate(all="ignore"), capture(*calls(*names)) as seen:  # what is not finite is a finding
        value = model.loss(*batch) if loss is None else loss(model, *batch)
        value.backward()
    return value.item(), seen


def calls(*ops: str) -> list[str]:
    """Patterns for `capture`: every call of these ops, in any layer."""
    return [pattern for op in ops for pattern in (op, f"*.{op}")]


def op_of(name: str) -> str:
    """The op of a captured call: `h.0.mlp.gelu#2` -> `gelu`"""
    return name.partition("#")[0].rpartition(".")[2]
