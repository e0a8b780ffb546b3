"""Functions made of ops: their gradient follows from the ops they call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.call import FOREIGN, as_array, explained, unpacked
from chainrule.autograd.types import Array
from chainrule.calls import renamed, shown
from chainrule.errors import ChainruleError, ConfigError

P = ParamSpec("P")
R = TypeVar("R")


class Composition(Generic[P, R]):
    """A function made of ops, called like one.

    Arguments written as `Tensor` may be arrays or lists too (arrays in, arrays out), `dim` means `axis`, and a wrong
    call raises a ChainruleError that names the function.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.name = self.__name__ = function.__name__.rstrip("_")
        self.__doc__, self.__module__ = function.__doc__, function.__module__

    @cached_property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function, eval_str=True)

    @cached_property
    def _tensors(self) -> tuple[list[bool], bool]:
        """Which positional arguments are Tensors, and whether all those that follow are."""
        taken = self.__signature__.parameters.values()
        fixed = [p.annotation is Tensor for p in taken if p.kind is p.POSITIONAL_OR_KEYWORD]
        return fixed, any(p.kind is p.VAR_POSITIONAL for p in taken)

    def __repr__(self) -> str:
        return f"<function {shown(self.name, self.__signature__)}>"

    def __call__(self, *args: P.args, **constants: P.kwargs) -> R:
        given: Any = constants
        if "dim" in given and "axis" in self.__signature__.parameters:
            given = renamed(self.name, given)
        fixed, variadic = self._tensors
        operands = unpacked(args) if variadic and not fixed else args
        operands = tuple(
            self._operand(a) if (fixed[i] if i < len(fixed) else variadic) else a
            for i, a in enumerate(operands)
        )
        try:
            return self.function(*operands, **given)
        except ChainruleError:
            raise
        except FOREIGN as error:
            raise explained(error, self.name, self.__signature__, operands, given) from error

    def _operand(self, value: Any) -> Any:
        if value is None:
            raise ConfigError(f"{self.name}: an operand is None (must be an array)")
        # A trace has arrays of its own.
        whole = isinstance(value, Tensor) or (hasattr(value, "shape") and not isinstance(value, np.ndarray))
        return value if whole else as_array(value, self.name)


def plain(x: Any) -> Array:
    """The values of a Tensor or an array."""
    array: Array = x.array if isinstance(x, Tensor) else x
    return array


def like(x: Any, array: Array) -> Tensor:
    """Values that were computed beside the ops, without a gradient: a Tensor if x is one, else the array."""
    plain: Any = array
    return Tensor.wrap(array) if isinstance(x, Tensor) else plain
