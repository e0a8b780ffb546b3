"""Interventions: change any intermediate value by name while a model runs, without changing the model.

>>> import chainrule as cr
>>> x = cr.Tensor([1.0, 2.0])
>>> with cr.intervene({"exp": lambda y: y * 0}):
...     (x.exp() + 1).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import numpy as np

from chainrule.autograd.capture import Calls
from chainrule.autograd.mode import mode, switched
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, GraphError, ShapeError
from chainrule.suggest import did_you_mean

Change: TypeAlias = Callable[[Any], Any]
"""The value of a call -> another of the same shape, or None to leave it; of several outputs a tuple."""

NEAREST = 3  # names in an error
LIKENESS = 0.4  # names of calls share much: layers, numbers


class Interventions:
    """Changes by the names of calls, and which calls there were."""

    def __init__(self, edits: Mapping[str, Any]) -> None:
        for name, edit in edits.items():
            if not callable(edit) and not isinstance(edit, Tensor | np.ndarray):
                kind = type(edit).__name__
                raise ConfigError(f"intervene: {name!r} is given a {kind} (must be a function or an array)")
        self.edits = dict(edits)
        self.calls = Calls()
        self.seen: dict[str, None] = {}  # names of calls, in their order
        self.used: set[str] = set()
        parts = [name.split(".") for name in edits]
        self.above = {".".join(names[:n]) for names in parts for n in range(1, len(names))}

    def begin(self) -> None:
        """A new forward pass: calls are counted from 1."""
        self.calls = Calls()

    def opens(self, op: str, name: str) -> bool:
        """True if a part of this call is to be changed: `h.0.attn.attention` of `h.0.attn.attention.softmax`."""
        return any(
            above.rpartition(".")[2] == op and (above == name or fnmatchcase(name, above))
            for above in self.above
        )

    def changed(self, name: str, results: list[Any], single: bool) -> list[Any]:
        """The results of a call of `name`, changed if there is an edit for it."""
        unique = self.calls.unique(name)
        self.seen[unique] = None
        for pattern, edit in self.edits.items():
            if pattern != unique and not fnmatchcase(unique, pattern):
                continue
            self.used.add(pattern)
            old = results[0] if single else tuple(results)
            with switched(mode, "interventions", ()), switched(mode, "captures", ()):
                new = edit(old) if callable(edit) else edit
            if new is None:
                continue
            found = [new] if single else list(new)
            if len(found) != len(results):
                raise ShapeError(f"intervene: {unique} got {len(found)} values for {len(results)}")
            results = [_fitting(unique, a, b) for a, b in zip(results, found, strict=True)]
        return results

    def check_used(self) -> None:
        """Refuse names that no call had."""
        for pattern in self.edits:
            if pattern not in self.used:
                hint = did_you_mean(pattern, self.seen, NEAREST, LIKENESS) or f"{len(self.seen)} others were"
                raise GraphError(f"intervene: nothing named {pattern!r} was called; {hint}")


def _fitting(name: str, old: Any, new: Any) -> Any:
    """The new value in the form of the old one: a Tensor for a Tensor, of the same shape and dtype."""
    if np.shape(getattr(new, "array", new)) != old.shape:
        shape = np.shape(getattr(new, "array", new))
        raise ShapeError(f"intervene: {name} got a value of shape {shape} for {old.shape} (must be equal)")
    if isinstance(new, Tensor) and new.dtype == old.dtype and isinstance(old, Tensor):
        return new
    if isinstance(new, Tensor) and new.requires_grad:
        raise ConfigError(
            f"intervene: {name} got {new.dtype} for {old.dtype} (must be equal to have a gradient)"
        )
    array = np.asarray(getattr(new, "array", new), dtype=old.dtype)
    return Tensor.wrap(array) if isinstance(old, Tensor) else array


@contextmanager
def intervene(edits: Mapping[str, Change | Array | Tensor]) -> Iterator[Interventions]:
    """Change the values of calls inside, by the names that `capture` shows: a function of the value, or a new value.

    `h.0.add#2` is the second call of that name in a forward pass, `h.*.attn` a pattern as in `capture`. Ops that are
    fused have parts: `h.0.attn.packed_attention.softmax` are the attention weights; then the composition from small ops
    runs in place of the kernel, with the same numbers but for rounding. What a function computes of a Tensor has a
    gradient; a function that returns None only looks. A name that nothing had is refused when the block ends.

    >>> import chainrule as cr, numpy as np
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> ids, weights = np.array([[1, 2, 3]]), "h.0.attn.packed_attention.softmax"
    >>> with cr.no_grad(), cr.intervene({weights: lambda A: A * 0}):        # no head sees anything
    ...     silent = model(ids)
    >>> with cr.no_grad(), cr.intervene({"h.0.attn.c_proj.linear": lambda y: y * 0}):
    ...     bool(np.allclose(silent.numpy(), model(ids).numpy(), atol=1e-6))
    True
    """
    found = Interventions(edits)
    with switched(mode, "interventions", (*mode.interventions, found)):
        yield found
    found.check_used()
