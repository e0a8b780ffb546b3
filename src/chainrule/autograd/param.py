"""Parameters, and the flat block that holds them.

All parameters of a model are views of one array, their gradients of another. The optimizer step, clipping, zeroing and
averaging across processes are then each one call on one array.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from operator import attrgetter, is_
from typing import Any, cast

import numpy as np

from chainrule import native
from chainrule.autograd.mode import mode
from chainrule.autograd.recording import assign
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Into
from chainrule.errors import ChainruleError, GraphError
from chainrule.suggest import hinted

# What is asked of all parameters several times in each step, without a loop in Python.
ARRAY, GRAD, HOOKS = attrgetter("array"), attrgetter("grad"), attrgetter("hooks")
LEARNS, KIND = attrgetter("_requires_grad"), attrgetter("_requires_grad", "decay")

ALIGN = 16  # elements: every float32 parameter starts on a 64-byte line


class Param(Tensor):
    """A trainable leaf. `param.requires_grad = False` freezes it; `decay=False` exempts it from weight decay."""

    __slots__ = ("block", "decay")

    def __init__(
        self, data: Any, name: str = "", *, decay: bool | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(data, requires_grad=True, dtype=dtype, name=name)
        # Matrices decay, gains and biases do not: shrinking a scale toward 0 is not a simpler model.
        self.decay = self.ndim >= 2 if decay is None else decay
        self.block: Parameters | None = None

    def accumulate(self, grad: Array) -> None:
        """Add `grad` into the gradient, which stays in the flat block even after `param.grad = None`."""
        if self.grad is None and self.block is not None:
            self.zero_grad()
        place, adds = self._place().taken()
        if adds:
            super().accumulate(grad)
        else:
            assign(place, grad)

    def into(self) -> Into | None:
        """The place in the flat block where an op may add the gradient directly, saving a temporary array."""
        if self.block is None or self.hooks:
            return None
        if self.grad is None:
            self.zero_grad()
        grad = self.grad
        fits = (
            grad is not None and grad.dtype == self.dtype and grad.flags.c_contiguous and grad.flags.writeable
        )
        return self._place() if fits else None

    def _place(self) -> Into:
        """Where the gradient is added, or what is left over there is overwritten."""
        grad = cast(Array, self.grad)
        own = self.block is not None and grad is self.block.grad_of.get(id(self))
        return Into(grad, self.block if own else None, id(self))

    def zero_grad(self) -> None:
        """Set the gradient to zero (in the flat block, if the parameter lives in one)."""
        if self.block is None or not self.block.learns(self):
            self.grad = None
        else:
            self.grad = self.block.grad_view(self)
            self.grad[...] = 0
            self.block.leftovers.discard(id(self))


class UnknownParameter(ChainruleError, KeyError):
    """A name that no parameter has."""


class Parameters:
    """The parameters of a model, over one flat block of values (`data`) and one of gradients (`grad`) of what learns.

    Iterating gives the tensors; by name they are found with `parameters["h.0.ln_1.weight"]` and `items()`.

    Trainable matrices come first, then trainable vectors, then frozen parameters, so that each group of an optimizer is
    one contiguous range (`ranges`).
    """

    def __init__(self, named: Iterable[tuple[str, Param]], dtype: Any = None) -> None:
        self.named: dict[str, Param] = {}
        for name, param in named:
            if name in self.named:
                raise GraphError(f"parameters: two parameters are named {name!r} (names must differ)")
            self.named[name] = param
        self.unique = list({id(p): p for p in self.named.values()}.values())  # tied parameters count once
        self.unique.sort(key=lambda p: (not p.requires_grad, not p.decay))
        kinds = {p.dtype for p in self.unique}
        if dtype is None and len(kinds) > 1:
            raise GraphError(
                f"parameters: dtypes {sorted(map(str, kinds))} in one block (must be equal; pass dtype)"
            )
        self.dtype = np.dtype(dtype) if dtype is not None else next(iter(kinds), np.dtype(np.float32))
        self.offsets: dict[int, int] = {}
        ends = []  # of each parameter, padding included
        end = 0
        for param in self.unique:
            self.offsets[id(param)] = end
            end += -(-param.size // ALIGN) * ALIGN
            ends.append(end)
        self.places = list(zip(self.unique, [0, *ends], ends, strict=False))  # with its begin and its end
        self.data = native.zeros(end, self.dtype)
        self.grad = native.zeros(self.learned(), self.dtype)  # what is frozen comes last, and has none
        self.values_of: dict[int, Array] = {}  # the views of each parameter, which are what it holds
        self.grad_of: dict[int, Array] = {}
        self.leftovers: set[int] = (
            set()
        )  # whose gradient is that of the step before: the next one overwrites it
        for name, param in self.named.items():
            self._adopt(name, param)
        self._views = [self.values_of[id(param)] for param in self.unique]
        self._grads = [self.grad_of.get(id(param)) for param in self.unique]
        self._kinds: list[tuple[bool, bool]] = []  # of each parameter when the ranges were found
        self._ranges: tuple[tuple[slice, bool], ...] = ()

    def _adopt(self, name: str, param: Param) -> None:
        view = self._view(self.data, param)
        view[...] = param.array
        param.array, param.block = view, self
        param.name = param.name or name
        self.values_of[id(param)] = view
        if self.learns(param):
            self.grad_of[id(param)] = self._view(self.grad, param)
        param.grad = self.grad_view(param) if param.requires_grad else None

    def _view(self, block: Array, param: Param) -> Array:
        start = self.offsets[id(param)]
        return block[start : start + param.size].reshape(param.shape)

    def grad_view(self, param: Param) -> Array:
        """The gradient of `param`, as a view into the flat gradient block, always the same."""
        return self.grad_of[id(param)]

    def learned(self) -> int:
        """Where the last parameter that learns now ends."""
        return max((stop for param, _, stop in self.places if param.requires_grad), default=0)

    def learns(self, param: Param) -> bool:
        """The block has a place for its gradient: it was not frozen when the block was made."""
        return self.offsets[id(param)] + param.size <= self.grad.size

    def ranges(self) -> tuple[tuple[slice, bool], ...]:
        """The trainable part of the block as contiguous (range, decays) pairs."""
        kinds = list(map(KIND, self.unique))
        if kinds != self._kinds:
            self._kinds, self._ranges = kinds, tuple(self._found_ranges())
        return self._ranges

    def _found_ranges(self) -> list[tuple[slice, bool]]:
        pieces: list[tuple[slice, bool]] = []
        for param, start, stop in self.places:
            if not param.requires_grad:
                continue
            if pieces and pieces[-1][1] == param.decay and pieces[-1][0].stop == start:
                pieces[-1] = (slice(pieces[-1][0].start, stop), param.decay)
            else:
                pieces.append((slice(start, stop), param.decay))
        return pieces

    def pieces(self) -> list[tuple[Array, Array, slice, bool, dict[str, float]]]:
        """The same as values and gradients in one row each, for an optimizer (`optim.tensors.Piece`)."""
        return [(self.data[span], self.grad[span], span, decays, {}) for span, decays in self.ranges()]

    def moved(self) -> str:
        """The name of a parameter that another block has taken, or whose array was replaced; empty if none was."""
        if all(map(is_, map(ARRAY, self.unique), self._views)):
            return ""
        return next(name for name, param in self.named.items() if not self.holds(param))

    def holds(self, param: Param) -> bool:
        """The values of this parameter are those of the block."""
        return param.block is self and param.array is self.values_of.get(id(param))

    def gathers(self) -> bool:
        """All gradients are those of the block; one that is missing begins there as zeros."""
        if all(map(is_, map(GRAD, self.unique), self._grads)):
            return True
        learning = [param for param in self.unique if param.requires_grad]
        for param in learning:
            if param.grad is None:
                param.zero_grad()
        return all(param.grad is self.grad_of.get(id(param)) for param in learning)

    def learning(self) -> list[tuple[bool, bool]]:
        """Of each parameter whether it learns, and whether a hook waits for its gradient."""
        return list(zip(map(LEARNS, self.unique), map(bool, map(HOOKS, self.unique)), strict=True))

    def zero_grad(self) -> None:
        """Zero all gradients in one pass."""
        self._check_place()
        self.clear(self.grad)
        self.leftovers.clear()

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """In here gradients begin anew, as after `zero_grad`, without a pass over memory.

        The first gradient that a matrix gets overwrites what is there; what has got none is cleared in the end.
        """
        self._check_place()
        first_vector = next((start for param, start, _ in self.places if not param.decay), self.grad.size)
        self.clear(self.grad[first_vector:])
        ends = {id(param): stop for param, _, stop in self.places}
        self.leftovers.update(key for key in self.grad_of if ends[key] <= first_vector)
        try:
            yield
        finally:
            while self.leftovers:
                self.clear(self.grad_of[self.leftovers.pop()])

    def _check_place(self) -> None:
        if name := self.moved():
            raise GraphError(
                f"parameters: {name} has moved to another block (ask the whole model, not its parts)"
            )

    def clear(self, grads: Array) -> None:
        """Zero a part of the gradient block."""
        if kernels := self.kernels():
            kernels.clear(grads)
        else:
            grads[...] = 0

    def kernels(self) -> Any:
        """The C++ kernels if this block is float32 and they are available, else None."""
        serve = mode.backend == "native" and self.dtype == np.float32 and native.available()
        return native.kernels() if serve else None

    def changed(self) -> None:
        """Mark the values as changed, for pending backward passes (optimizers call this)."""
        for param in self.unique:
            param.version += 1

    def count(self, *, trainable: bool = False) -> int:
        """The number of parameters; tied ones count once."""
        return sum(p.size for p in self.unique if p.requires_grad or not trainable)

    def state(self) -> dict[str, Array]:
        """Copies of all values by name, for a checkpoint."""
        return {name: param.array.copy() for name, param in self.named.items()}

    def items(self) -> ItemsView[str, Param]:
        """Names and parameters; a tied one under each of its names."""
        return self.named.items()

    def keys(self) -> KeysView[str]:
        """All names."""
        return self.named.keys()

    def values(self) -> ValuesView[Param]:
        """The parameter of each name."""
        return self.named.values()

    def __getitem__(self, name: str) -> Param:
        if name not in self.named:
            rule = hinted("must be the name of a parameter", str(name), self.named)
            raise UnknownParameter(f"parameters: got {name!r} ({rule})")
        return self.named[name]

    def __contains__(self, name: object) -> bool:
        return any(param is name for param in self.unique) or (isinstance(name, str) and name in self.named)

    def __iter__(self) -> Iterator[Param]:
        """Each parameter once, tied ones too, in the order of their names."""
        return iter(dict.fromkeys(self.named.values()))

    def __len__(self) -> int:
        return len(self.named)

    def __repr__(self) -> str:
        return f"<{len(self)} parameters, {self.count():,} numbers, {self.dtype}>"
