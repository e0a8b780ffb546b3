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
    """A needed gradient and its place: an op that adds it to `array` returns that array."""

    __slots__ = ("_block", "_key", "place")

    def __init__(self, place: Array, block: Any = None, key: int = 0) -> None:
        self.place, self._block, self._key = place, block, key

    @property
    def array(self) -> Array:
        """The place, to be added to: cleared, if a gradient of the step before was left over there."""
        place, adds = self.taken()
        if not adds:
            self._block.clear(place)
        return place

    def taken(self) -> tuple[Array, bool]:
        """The place, and whether to add to what lies there. If not it is a leftover: all of it must be overwritten."""
        if self._block is None or self._key not in self._block.leftovers:
            return self.place, True
        self._block.leftovers.remove(self._key)
        return self.place, False


def is_float(array: Array) -> bool:
    """True for the dtypes that can carry a gradient."""
    return array.dtype.kind == "f"
