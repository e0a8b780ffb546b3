"""The operators and methods of a Tensor: calls of ops by name, since the engine knows no op."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from chainrule.autograd.types import Array, Axis, Shape
from chainrule.calls import answering_methods, one_axis_methods
from chainrule.errors import ConfigError, GraphError, ShapeError
from chainrule.torch_names import METHODS, Elsewhere

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor

Number: TypeAlias = "Tensor | Array | float"


class _Operations(dict[str, "Callable[..., Tensor]"]):
    """Ops by name: `chainrule.ops` fills it, and is imported on first use."""

    def __missing__(self, name: str) -> Callable[..., Tensor]:
        importlib.import_module("chainrule.ops")
        if name not in self:
            raise KeyError(name)
        return self[name]


def _operator(name: str) -> tuple[Callable[[Any, Number], Tensor], Callable[[Any, Number], Tensor]]:
    """The methods of `self ∘ other` and `other ∘ self`."""

    def operate(self: Tensor, other: Number) -> Tensor:
        return self.ops[name](self, other)

    def reflected(self: Tensor, other: Number) -> Tensor:
        return self.ops[name](other, self)

    return operate, reflected


def _unary(name: str, about: str | None = None) -> Callable[[Any], Tensor]:
    """The method of an op of one tensor."""

    def method(self: Tensor) -> Tensor:
        return self.ops[name](self)

    method.__name__, method.__doc__ = name, about
    return method


def _comparison(sign: str, compare: Callable[..., Any]) -> Callable[[Any, Any], Tensor]:
    """The method of `self sign other`: a tensor of booleans, without a gradient."""

    def method(self: Tensor, other: Any) -> Tensor:
        if other is None and sign in ("==", "!="):
            return NotImplemented  # type: ignore[no-any-return]  # a tensor is not None
        plain = getattr(other, "array", other)
        try:
            return type(self).wrap(np.asarray(compare(self.array, plain), dtype=bool))
        except (TypeError, ValueError) as error:
            shape = f"shape {np.shape(plain)}" if isinstance(plain, np.ndarray) else repr(plain)
            raise ShapeError(
                f"{sign}: cannot compare shape {self.shape} with {shape} (must be numbers that broadcast)"
            ) from error

    return method


class Methods:
    """What a Tensor can do besides holding values and gradients. `axis` may also be called `dim`."""

    __slots__ = ()

    ops: ClassVar[dict[str, Callable[..., Tensor]]] = _Operations()
    array: Array

    @classmethod
    def register(cls, ops: dict[str, Callable[..., Tensor]]) -> None:
        """Take in the ops; those that are no methods, and the methods of PyTorch, raise an error that says what is."""
        cls.ops.update(ops)
        for name, meant in ({name: f"cr.ops.{name}(x)" for name in ops} | METHODS).items():
            if not hasattr(cls, name):
                setattr(cls, name, Elsewhere(name, meant))

    def __dir__(self) -> list[str]:
        places = {**vars(Methods), **vars(type(self))}
        return [name for name in super().__dir__() if not isinstance(places.get(name), Elsewhere)]

    if TYPE_CHECKING:

        @classmethod
        def wrap(cls, array: Array) -> Tensor: ...
        @property
        def shape(self) -> Shape: ...
        @property
        def ndim(self) -> int: ...
        @property
        def dtype(self) -> np.dtype[Any]: ...

    # -- operators ------------------------------------------------------------------------------------------

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")
    __pow__, __rpow__ = _operator("pow")
    __matmul__, __rmatmul__ = _operator("matmul")

    # Element by element, as in NumPy; whether two names mean one tensor is asked with `is`.
    __eq__ = _comparison("==", np.equal)  # type: ignore[assignment]
    __ne__ = _comparison("!=", np.not_equal)  # type: ignore[assignment]
    __lt__ = _comparison("<", np.less)
    __le__ = _comparison("<=", np.less_equal)
    __gt__ = _comparison(">", np.greater)
    __ge__ = _comparison(">=", np.greater_equal)
    __hash__ = object.__hash__

    __neg__, __abs__ = _unary("neg"), _unary("abs")

    def __invert__(self) -> Tensor:
        if self.dtype != bool:
            raise ConfigError(f"~: the tensor is {self.dtype} (must be booleans, such as x > 0)")
        return self.wrap(~self.array)

    def __getitem__(self, index: Any) -> Tensor:
        return self.ops["getitem"](self, index=index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise GraphError(
            "a tensor is not changed in place (use cr.ops.where or masked_fill; of a leaf: x.data[...] = values)"
        )

    # -- each element ---------------------------------------------------------------------------------------

    abs = _unary("abs", "|x| of each element.")
    exp = _unary("exp", "e to the power of each element.")
    log = _unary("log", "Natural logarithm of each element.")
    log1p = _unary("log1p", "ln(1 + x) of each element, exact near 0.")
    sqrt = _unary("sqrt", "Square root of each element.")
    rsqrt = _unary("rsqrt", "1 / √x of each element.")
    sign = _unary("sign", "-1, 0 or 1 of each element.")
    tanh = _unary("tanh", "Hyperbolic tangent of each element.")
    sigmoid = _unary("sigmoid", "1 / (1 + e^-x) of each element.")
    relu = _unary("relu", "max(x, 0) of each element.")
    clone = _unary("clone", "A copy of the values; the gradient passes through it.")

    def clip(self, min: float | None = None, max: float | None = None) -> Tensor:
        """Each element, at least `min` and at most `max`."""
        return self.ops["clip"](self, min=min, max=max)

    def masked_fill(self, mask: Tensor | Array, value: float) -> Tensor:
        """`value` where `mask` holds, x elsewhere."""
        return self.ops["masked_fill"](self, mask, value)

    def tril(self, k: int = 0) -> Tensor:
        """The lower triangle of the last two axes, 0 above diagonal `k`."""
        return self.ops["tril"](self, k)

    def triu(self, k: int = 0) -> Tensor:
        """The upper triangle of the last two axes, 0 below diagonal `k`."""
        return self.ops["triu"](self, k)

    def astype(self, dtype: Any) -> Tensor:
        """The values in another dtype; the gradient comes back in the old one."""
        return self.ops["astype"](self, dtype)

    # -- reductions: over `axis`, all axes by default ---------------------------------------------------------

    def sum(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None) -> Tensor:
        """Sum over `axis`."""
        return self.ops["sum"](self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None) -> Tensor:
        """Mean over `axis`."""
        return self.ops["mean"](self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None) -> Tensor:
        """Maximum over `axis` (`argmax` says where)."""
        return self.ops["max"](self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None) -> Tensor:
        """Minimum over `axis` (`argmin` says where)."""
        return self.ops["min"](self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None) -> Tensor:
        """Product over `axis`."""
        return self.ops["prod"](self, axis=axis, keepdims=keepdims)

    def norm(self, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None) -> Tensor:
        """Euclidean norm over `axis`."""
        return self.ops["norm"](self, axis=axis, keepdims=keepdims)

    def var(
        self, axis: Axis = None, keepdims: bool = False, *, correction: float = 0, dim: Axis = None
    ) -> Tensor:
        """Variance over `axis`, Σ (x - mean)² / (n - correction)."""
        return self.ops["var"](self, axis=axis, keepdims=keepdims, correction=correction)

    def std(
        self, axis: Axis = None, keepdims: bool = False, *, correction: float = 0, dim: Axis = None
    ) -> Tensor:
        """Standard deviation over `axis`, the root of `var`."""
        return self.ops["std"](self, axis=axis, keepdims=keepdims, correction=correction)

    def argmax(self, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None) -> Tensor:
        """The index of the largest element along `axis`, or in the flattened tensor; the first of equal ones."""
        return self.ops["argmax"](self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None) -> Tensor:
        """The index of the smallest element along `axis`, or in the flattened tensor; the first of equal ones."""
        return self.ops["argmin"](self, axis=axis, keepdims=keepdims)

    def all(self) -> bool:
        """Whether every element is true (not 0)."""
        return bool(self.array.all())

    def any(self) -> bool:
        """Whether one element is true (not 0)."""
        return bool(self.array.any())

    # -- along an axis ----------------------------------------------------------------------------------------

    def cumsum(self, axis: int = -1, *, dim: int | None = None) -> Tensor:
        """Running sums along `axis`."""
        return self.ops["cumsum"](self, axis=axis)

    def sort(
        self, axis: int = -1, *, descending: bool = False, dim: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """The values in order along `axis`, and the indices they come from."""
        return self.ops["sort"](self, axis=axis, descending=descending)  # type: ignore[return-value]

    def topk(self, k: int, axis: int = -1, *, dim: int | None = None) -> tuple[Tensor, Tensor]:
        """The `k` largest values along `axis`, largest first, and their indices."""
        return self.ops["topk"](self, k, axis=axis)  # type: ignore[return-value]

    def split(
        self, size: int | Sequence[int], axis: int = 0, *, dim: int | None = None
    ) -> tuple[Tensor, ...]:
        """Pieces of `size` along `axis` (the last may be smaller), or of the sizes of a list."""
        return self.ops["split"](self, size, axis=axis)  # type: ignore[return-value]

    def chunk(self, chunks: int, axis: int = 0, *, dim: int | None = None) -> tuple[Tensor, ...]:
        """At most `chunks` pieces of equal size along `axis` (the last may be smaller)."""
        return self.ops["chunk"](self, chunks, axis=axis)  # type: ignore[return-value]

    # -- shapes -----------------------------------------------------------------------------------------------

    def reshape(self, *shape: int | tuple[int, ...] | list[int]) -> Tensor:
        """The same values in another shape; one size may be -1."""
        return self.ops["reshape"](self, shape=_sizes(shape))

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """The axes from `start` to `end` as one."""
        return self.ops["flatten"](self, start, end)

    def squeeze(self, axis: Axis = None, *, dim: Axis = None) -> Tensor:
        """Without the axes of size 1, or without those of `axis`."""
        return self.ops["squeeze"](self, axis=axis)

    def unsqueeze(self, axis: int | None = None, *, dim: int | None = None) -> Tensor:
        """With a new axis of size 1 at `axis`."""
        return self.ops["unsqueeze"](self, axis=axis)

    def transpose(self, *axes: int) -> Tensor:
        """The axes in another order (reversed by default). Two of them are swapped by `swapaxes`."""
        return self.ops["transpose"](self, axes=axes or None)

    def permute(self, *axes: int | tuple[int, ...] | list[int]) -> Tensor:
        """The axes in another order, all of them named."""
        return self.ops["transpose"](self, axes=_sizes(axes))

    def swapaxes(self, a: int, b: int) -> Tensor:
        """Swap two axes."""
        return self.ops["swapaxes"](self, a, b)

    @property
    def T(self) -> Tensor:
        return self.transpose()

    def expand(self, *shape: int | tuple[int, ...] | list[int]) -> Tensor:
        """Copies along the axes of size 1 and along new leading axes; -1 keeps a size."""
        return self.ops["expand"](self, _sizes(shape))

    def repeat(self, *counts: int | tuple[int, ...] | list[int]) -> Tensor:
        """The whole tensor, `counts` times along each axis (`numpy.tile`)."""
        return self.ops["repeat"](self, _sizes(counts))

    def pad(self, widths: Sequence[int] | Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
        """`value` before and after: widths (left, right) of the last axis, then of the one before it, and so on."""
        return self.ops["pad"](self, widths, value=value)


one_axis_methods(Methods)
answering_methods(Methods)


def _sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    """`reshape(2, 3)` and `reshape((2, 3))`"""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], list | tuple) else given
