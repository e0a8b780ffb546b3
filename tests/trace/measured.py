"""What really happens: the matrix products that NumPy is asked for, and the arrays that the tape holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Op, Tensor
from chainrule.autograd.tape import Output, Record

products: Counter[str] = Counter()  # multiply-adds by "forward" or "backward" and the name of the op


class Counted(np.ndarray[Any, Any]):
    """An array whose matrix products are counted; whatever NumPy computes from it is one too."""

    where = ""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        plain = [x.view(np.ndarray) if isinstance(x, Counted) else x for x in inputs]
        if out:
            options["out"] = tuple(x.view(np.ndarray) if isinstance(x, Counted) else x for x in out)
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc is np.matmul:
            products[Counted.where] += math.prod(result.shape) * plain[0].shape[-1]
        return out[0] if out else result.view(Counted) if isinstance(result, np.ndarray) else result

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        result = super().__array_function__(function, types, args, options)
        return tuple(map(counted, result)) if isinstance(result, tuple) else counted(result)


def counted(x: Any) -> Any:
    return x.view(Counted) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Multiply-adds of every matrix product inside an op, by the NumPy reference."""
    forward, backward, both = Op._called, Op.run_backward, Op.run_value_and_grad

    def run_forward(self: Op, function: Any, arrays: Any, *rest: Any) -> Any:
        Counted.where = f"forward {self.name}"
        return plain(forward(self, function, [counted(a) for a in arrays], *rest))

    def run_backward(self: Op, dy: Any, saved: Any, needs: Any) -> Any:
        Counted.where = f"backward {self.name}"
        return plain(backward(self, counted(dy), tuple(map(counted, saved)), needs))

    def run_value_and_grad(self: Op, dy: Any, saved: Any, needs: Any) -> Any:
        Counted.where = f"backward {self.name}"
        return plain(both(self, counted(dy), tuple(map(counted, saved)), needs))

    products.clear()
    with pytest.MonkeyPatch.context() as patch, cr.backend("reference"):
        patch.setattr(Op, "_called", run_forward)
        patch.setattr(Op, "run_backward", run_backward)
        patch.setattr(Op, "run_value_and_grad", run_value_and_grad)
        yield products


def plain(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(plain, x))
    return x.view(np.ndarray) if isinstance(x, Counted) else x


def step_products(loss: Any) -> tuple[dict[str, int], dict[str, int]]:
    """FLOPs by op, forward and backward, of `loss()` and its gradients."""
    with counting() as found:
        loss().backward()
    flops = {name: 2 * n for name, n in found.items()}
    return tuple(  # type: ignore[return-value]
        {name.split()[1]: n for name, n in flops.items() if name.startswith(way)}
        for way in ("forward", "backward")
    )


def tape(result: Tensor) -> list[Record]:
    """Every record that a tensor depends on."""
    assert result.record is not None
    found = {id(result.record): result.record}
    stack = [result.record]
    while stack:
        for source in stack.pop().inputs:
            if isinstance(source, Output) and id(source.record) not in found:
                found[id(source.record)] = source.record
                stack.append(source.record)
    return list(found.values())


def kept_bytes(result: Tensor, parameters: Any) -> int:
    """Memory of the arrays of floats and masks on the tape, without parameters; views of one count once."""
    own = root(parameters.data)
    arrays = {}
    for record in tape(result):
        for x in record.saved:
            if isinstance(x, np.ndarray) and x.ndim and x.dtype.kind in "fb":
                arrays[id(root(x))] = root(x)
    return sum(a.nbytes for a in arrays.values() if a is not own)


def root(x: np.ndarray) -> np.ndarray:
    """The array whose memory it is."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x
