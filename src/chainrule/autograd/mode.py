"""The current mode of each thread: gradients, backend, precision, names, captures, interventions, recording."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from chainrule.errors import ConfigError
from chainrule.native import PRECISIONS

if TYPE_CHECKING:
    from chainrule.autograd.capture import Capture
    from chainrule.autograd.intervene import Interventions
    from chainrule.autograd.op import Recorder
    from chainrule.autograd.recording import Recording

BACKENDS = ("native", "reference")


def _check_backend(name: str) -> str:
    if name not in BACKENDS:
        raise ConfigError(f"backend: got {name!r} (must be one of {', '.join(BACKENDS)})")
    return name


class _Mode(threading.local):
    def __init__(self) -> None:
        self.grad = True
        self.backend = _check_backend(os.environ.get("CHAINRULE_BACKEND", "native"))
        self.precision = "fp32"
        self.scope = ""
        self.captures: tuple[Capture, ...] = ()
        self.interventions: tuple[Interventions, ...] = ()
        self.trace: Recorder | None = None
        self.recording: Recording | None = None  # of kernel calls


mode = _Mode()


@contextmanager
def switched(place: Any, name: str, value: Any) -> Iterator[Any]:
    """Set an attribute of a thread's mode to `value`, and back to what it was at the end."""
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield value
    finally:
        setattr(place, name, before)


@contextmanager
def unchanged() -> Iterator[None]:
    """At the end this thread's mode is what it was, whatever was broken off between."""
    before = dict(vars(mode))
    try:
        yield
    finally:
        vars(mode).update(before)


def no_grad() -> AbstractContextManager[Any]:
    """Compute without recording: `with cr.no_grad(): model(x)` keeps nothing for a backward pass."""
    return switched(mode, "grad", False)


def enable_grad() -> AbstractContextManager[Any]:
    """Turn recording on inside a `no_grad` block (used by recomputation)."""
    return switched(mode, "grad", True)


def backend(name: str) -> AbstractContextManager[Any]:
    """Choose the backend: "native" (C++ kernels where available) or "reference" (NumPy everywhere).

    >>> import chainrule as cr
    >>> with cr.backend("reference"):
    ...     y = cr.ops.exp(cr.Tensor([0.0]))
    """
    return switched(mode, "backend", _check_backend(name))


def precision(name: str) -> AbstractContextManager[Any]:
    """`linear`, `matmul` and `linear_cross_entropy` round their inputs to "bf16" or "fp16" and sum in float32.

    All other ops, attention and recurrent cells included, stay in float32. The backward pass uses the precision set
    when it runs, a deferred loss that of its call.

    >>> import chainrule as cr, numpy as np
    >>> with cr.precision("bf16"):
    ...     float(cr.ops.matmul(np.float32([[1.001]]), np.float32([[3.0]]))[0, 0])
    3.0
    """
    if name not in PRECISIONS:
        raise ConfigError(f"precision: got {name!r} (must be one of {', '.join(PRECISIONS)})")
    return switched(mode, "precision", name)


def scope(name: str) -> AbstractContextManager[Any]:
    """Prefix the names of ops called inside; layers use it so that `capture` finds `h.0.attn`."""
    return switched(mode, "scope", f"{mode.scope}.{name}" if mode.scope and name else mode.scope or name)
