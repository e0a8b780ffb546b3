"""The few types that ops and the tape exchange."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from chainrule.types import Array as Array

Saved: TypeAlias = tuple[Any, ...]  # kept by forward for backward: arrays, None or small constants
Result: TypeAlias = tuple[Array, Saved]  # of a forward pass: y, and what backward needs
Results: TypeAlias = tuple[tuple[Array, ...], Saved]  # the same with several outputs
# Per positional argument: whether its gradient is needed: False, True, or an Into.
Needs: TypeAlias = tuple[Any, ...]
Grads: TypeAlias = tuple[Array | None, ...]  # per positional argument: its gradient, or None if not needed
Shape: TypeAlias = tuple[int, ...]
Axis: TypeAlias = int | tuple[int, ...] | None  # None: all axes; negative from the end


class Work(NamedTuple):
    """FLOPs of matmuls, two per multiply-add; elementwise work is not counted."""

    forward: int = 0
    backward: int = 0
    recompute: int = 0
    """In the backward pass, of what forward did not keep."""

    @property
    def total(self) -> int:
        return sum(self)


class Into:
    """A needed gradient and its place: an op that writes it there returns that array."""

    __slots__ = ("_key", "_leftovers", "array")

    def __init__(self, array: Array, leftovers: set[int] | None = None, key: int = 0) -> None:
        self.array, self._leftovers, self._key = array, leftovers, key

    def adds(self) -> bool:
        """Whether to add to what lies there: not to a leftover of the step before, which is overwritten.

        It is one no longer then: ask once, and write all of it.
        """
        if not self._leftovers or self._key not in self._leftovers:
            return True
        self._leftovers.remove(self._key)
        return False


def is_float(array: Array) -> bool:
    """True for the dtypes that can carry a gradient."""
    return array.dtype.kind == "f"
