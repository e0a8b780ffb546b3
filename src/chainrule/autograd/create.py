"""New tensors: zeros, ones, ranges and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import random
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Shape
from chainrule.calls import answering
from chainrule.errors import ShapeError


@answering
def zeros(*shape: int | Shape | list[int], dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    return _made(np.zeros(_sizes("zeros", shape), dtype), requires_grad)


@answering
def ones(*shape: int | Shape | list[int], dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """A tensor of ones: `ones(2, 3)` or `ones((2, 3))`."""
    return _made(np.ones(_sizes("ones", shape), dtype), requires_grad)


@answering
def arange(start: float, stop: float | None = None, step: float = 1, *, dtype: Any = None) -> Tensor:
    """Numbers from `start` (0 if only one bound is given) to below `stop`; integers unless one of them is a float.

    >>> import chainrule as cr
    >>> cr.arange(3).tolist(), cr.arange(0, 1, 0.5).dtype
    ([0, 1, 2], dtype('float32'))
    """
    if not step:
        raise ShapeError("arange: step is 0 (must not be)")
    low, high = (0, start) if stop is None else (start, stop)
    if dtype is None and any(isinstance(n, float | np.floating) for n in (low, high, step)):
        dtype = np.float32
    return Tensor.wrap(np.arange(low, high, step, dtype=dtype))


@answering
def randn(*shape: int | Shape | list[int], dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers, new ones with every call and the same again after `cr.seed`.

    >>> import chainrule as cr
    >>> cr.seed(1)
    >>> a, b = cr.randn(2), cr.randn(2)
    >>> cr.seed(1)
    >>> (cr.randn(2) == a).all(), (b == a).any()
    (True, False)
    """
    sizes = _sizes("randn", shape)
    return _made(random.from_key(random.next_key("randn")).normal(size=sizes).astype(dtype), requires_grad)


def _made(array: Array, requires_grad: bool) -> Tensor:
    tensor = Tensor.wrap(array)
    tensor.requires_grad = requires_grad
    return tensor


def _sizes(name: str, shape: tuple[Any, ...]) -> Shape:
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    for n in sizes:
        if not isinstance(n, int | np.integer) or n < 0:
            raise ShapeError(f"{name}: shape {sizes!r} (must be sizes, integers from 0 on)")
    return sizes
