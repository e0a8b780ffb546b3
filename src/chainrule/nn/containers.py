"""Layers in a row and in a list. A plain list or dict of layers as an attribute works too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from chainrule.autograd import Tensor
from chainrule.errors import ConfigError, ShapeError, kind_of
from chainrule.nn.layer import Layer

L = TypeVar("L", bound=Layer)


def _at(layer: Any, index: Any, what: str) -> Any:
    """What is at a number, also counted from the end."""
    count = len(layer)
    if not isinstance(index, int | np.integer) or not -count <= index < count:
        rule = f"must be an integer from {-count} to {count - 1}"
        raise ShapeError(f"{type(layer).__name__}: index {index} of {count} {what} ({rule})")
    return getattr(layer, str(index % count))


class ModuleList(Layer, Generic[L]):
    """A list of layers whose parameters are found under their numbers: `0.weight`."""

    def __init__(self, layers: Iterable[L] = ()) -> None:
        self._count = 0
        for layer in layers:
            self.append(layer)

    def append(self, layer: L) -> None:
        """Add a layer at the end."""
        if not isinstance(layer, Layer):
            raise ConfigError(f"{type(self).__name__}: got {kind_of(layer)} (must be a layer)")
        setattr(self, str(self._count), layer)
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[L]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> L:
        layer: L = _at(self, index, "layers")
        return layer


class Sequential(Layer):
    """Layers, ops or functions one after the other, each called with the result of the one before.

    >>> import chainrule as cr, numpy as np
    >>> net = cr.nn.Sequential(cr.nn.Linear(3, 8), cr.ops.relu, cr.nn.Linear(8, 2))
    >>> net(cr.zeros(5, 3)).shape
    (5, 2)
    """

    def __init__(self, *steps: Callable[[Any], Any]) -> None:
        for i, step in enumerate(steps):
            if not callable(step):
                raise ConfigError(f"Sequential: got {kind_of(step)} (must be a layer or a function)")
            setattr(self, str(i), step)

    def __len__(self) -> int:
        return sum(name.isdigit() for name in vars(self))

    def __iter__(self) -> Iterator[Callable[[Any], Any]]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> Any:
        return _at(self, index, "steps")

    def forward(self, x: Tensor) -> Tensor:
        """x (..., C) -> (..., C') of the last step"""
        for step in self:
            x = step(x)
        return x
