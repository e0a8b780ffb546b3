"""Tensor: an array, a gradient, and the place on the tape where it was computed."""

from __future__ import annotations

import importlib
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from chainrule.autograd.tape import Hook, Record, replay, source_of
from chainrule.autograd.types import Array, Into, Shape, is_float
from chainrule.errors import GraphError, ShapeError


class _Operations(dict[str, "Callable[..., Tensor]"]):
    """Ops by name, since the engine knows none: `chainrule.ops` fills it, and is imported on first use."""

    def __missing__(self, name: str) -> Callable[..., Tensor]:
        importlib.import_module("chainrule.ops")
        if name not in self:
            raise KeyError(name)
        return self[name]


def _operator(name: str) -> tuple[Callable[[Tensor, Any], Tensor], Callable[[Tensor, Any], Tensor]]:
    """The methods of `self ∘ other` and `other ∘ self`."""

    def operate(self: Tensor, other: Any) -> Tensor:
        return self.ops[name](self, other)

    def reflected(self: Tensor, other: Any) -> Tensor:
        return self.ops[name](other, self)

    return operate, reflected


class Tensor:
    """A NumPy array that remembers how it was computed.

    `Tensor(data)` copies its data; Python floats and lists of them become float32. With `requires_grad=True` it is a
    leaf whose `.grad` is filled by `backward()`. Arithmetic, indexing and the methods below record themselves.

    >>> import chainrule as cr
    >>> x = cr.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    array([2., 4., 6.], dtype=float32)
    """

    __slots__ = (
        "__weakref__", "_requires_grad", "array", "grad", "hooks", "index", "name", "record", "version"
    )  # fmt: skip
    __array_ufunc__ = None  # so that `ndarray + Tensor` calls Tensor instead of looping in NumPy

    ops: ClassVar[dict[str, Callable[..., Tensor]]] = _Operations()

    array: Array
    grad: Array | None
    record: Record | None  # the call that computed this tensor; None for a leaf

    def __init__(self, data: Any, requires_grad: bool = False, dtype: Any = None, name: str = "") -> None:
        if isinstance(data, Tensor):
            data = data.array
        if dtype is None and not isinstance(data, np.ndarray | np.generic):
            kind = np.asarray(data).dtype
            dtype = np.float32 if kind.kind == "f" else kind
        self._set(np.array(data, dtype=dtype, order="C"), requires_grad, name)

    @property
    def requires_grad(self) -> bool:
        """Whether this tensor gets a gradient. Set it to False to freeze a leaf."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not is_float(self.array):
            raise GraphError(
                f"Tensor: dtype {self.dtype} of shape {self.shape} cannot require a gradient (must be a float dtype)"
            )
        self._requires_grad = value

    def _set(self, array: Array, requires_grad: bool, name: str) -> None:
        self.array = array
        self.begin(name)
        self.requires_grad = requires_grad

    def begin(self, name: str) -> None:
        """Everything but the values, as in a tensor that nothing has happened to."""
        self.grad = None
        self._requires_grad = False
        self.name = name
        self.record = None
        self.index = 0
        self.version = 0
        self.hooks: tuple[Hook, ...] = ()

    @classmethod
    def wrap(cls, array: Array) -> Tensor:
        """A tensor around `array` itself, without a copy and without a gradient."""
        tensor = Tensor.__new__(Tensor)
        tensor._set(array, False, "")
        return tensor

    @classmethod
    def recorded(cls, array: Array, record: Record, index: int) -> Tensor:
        """Output `index` of a recorded call, read-only since backward may need its values."""
        view = array.view()
        view.setflags(write=False)
        tensor = cls.wrap(view)
        tensor.requires_grad, tensor.record, tensor.index, tensor.name = True, record, index, record.name
        return tensor

    # -- the array ------------------------------------------------------------------------------------------

    @property
    def data(self) -> Array:
        """The values. Assigning (`p.data -= lr * p.grad`) changes them in place; a pending backward detects it."""
        return self.array

    @data.setter
    def data(self, value: Any) -> None:
        if self.record is not None:
            raise GraphError(
                f"{self.name}: cannot change the values of a computed tensor (detach() a copy first)"
            )
        if value is not self.array:
            value = np.asarray(value, dtype=self.array.dtype)
            if value.shape != self.array.shape:
                raise ShapeError(
                    f"data: got shape {value.shape} for a tensor of shape {self.shape} (must be equal)"
                )
            self.array[...] = value
        self.version += 1

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def numpy(self) -> Array:
        """The values as a NumPy array (not a copy; take `.numpy().copy()` to change them)."""
        return self.array

    def item(self) -> float:
        """The value of a tensor with one element as a Python number."""
        if self.array.size != 1:
            raise ShapeError(f"item: tensor of shape {self.shape} has {self.size} elements (must have one)")
        return self.array.item()  # type: ignore[no-any-return]

    def detach(self) -> Tensor:
        """The same values, detached from the graph."""
        return Tensor.wrap(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.requires_grad:
            raise GraphError(
                f"{self.name or 'Tensor'}: NumPy would drop the gradient of this tensor (use cr.ops, or .numpy())"
            )
        return np.array(self.array, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ShapeError("len: a tensor of shape () has no length (must have at least one axis)")
        return len(self.array)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.array)

    def __float__(self) -> float:
        return float(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def __repr__(self) -> str:
        values = np.array2string(self.array, precision=4, separator=", ", threshold=64, prefix="Tensor(")
        return f"Tensor({values}{', requires_grad=True' if self.requires_grad else ''})"

    # -- gradients ------------------------------------------------------------------------------------------

    def backward(self, seed: Any = None, *, retain: bool = False) -> None:
        """Fill `.grad` of every leaf this tensor depends on (gradients add up; zero them between steps).

        `seed` is the gradient of this tensor, 1 for a scalar loss. With `retain=True` the saved values are kept, so
        that backward can run a second time.
        """
        backward([(self, seed)], retain=retain)

    def _seed(self, seed: Any) -> Array:
        if seed is None and self.size != 1:
            raise GraphError(
                f"backward: output has shape {self.shape} (must be a scalar, or pass the gradient of its consumer)"
            )
        grad = np.ones(self.shape, self.dtype) if seed is None else np.asarray(seed, dtype=self.dtype)
        if grad.shape != self.shape:
            raise ShapeError(
                f"backward: seed has shape {grad.shape}, output has shape {self.shape} (must be equal)"
            )
        return grad

    def accumulate(self, grad: Array) -> None:
        """Add `grad` into `.grad`."""
        if self.grad is None:
            self.grad = np.array(grad)  # a copy: the same array may be the gradient of another tensor
        else:
            self.grad += grad

    def into(self) -> Into | None:
        """The place where an op may add the gradient directly; only parameters in a flat block have one."""
        return None

    def zero_grad(self) -> None:
        """Forget the gradient."""
        self.grad = None

    def register_hook(self, hook: Hook) -> None:
        """Call `hook(grad)` when the gradient of this tensor is known; an array it returns replaces it."""
        if not self.requires_grad:
            raise GraphError(f"register_hook: this tensor of shape {self.shape} gets no gradient")
        if self.record is None:
            self.hooks += (hook,)
        else:
            self.record.hooks = self.record.hooks or {}
            self.record.hooks.setdefault(self.index, []).append(hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this computed tensor in `.grad`, as leaves do."""
        if self.record is not None:
            me = weakref.ref(self)

            def keep(grad: Array) -> None:
                tensor = me()
                if tensor is not None:
                    tensor.accumulate(grad)

            self.register_hook(keep)

    # -- operations, found by name --------------------------------------------------------------------------

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")
    __pow__, __rpow__ = _operator("pow")
    __matmul__, __rmatmul__ = _operator("matmul")

    def __neg__(self) -> Tensor:
        return self.ops["neg"](self)

    def __getitem__(self, index: Any) -> Tensor:
        return self.ops["getitem"](self, index=index)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Sum over `axis` (all axes by default)."""
        return self.ops["sum"](self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Mean over `axis` (all axes by default)."""
        return self.ops["mean"](self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Maximum over `axis` (all axes by default)."""
        return self.ops["max"](self, axis=axis, keepdims=keepdims)

    def reshape(self, *shape: Any) -> Tensor:
        """The same values in another shape; one size may be -1."""
        return self.ops["reshape"](
            self, shape=shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        )

    def transpose(self, *axes: int) -> Tensor:
        """The axes in another order (reversed by default)."""
        return self.ops["transpose"](self, axes=axes or None)

    def swapaxes(self, a: int, b: int) -> Tensor:
        """Swap two axes."""
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(*order)

    @property
    def T(self) -> Tensor:
        return self.transpose()

    def exp(self) -> Tensor:
        """e to the power of each element."""
        return self.ops["exp"](self)

    def log(self) -> Tensor:
        """Natural logarithm of each element."""
        return self.ops["log"](self)

    def sqrt(self) -> Tensor:
        """Square root of each element."""
        return self.ops["sqrt"](self)

    def tanh(self) -> Tensor:
        """Hyperbolic tangent of each element."""
        return self.ops["tanh"](self)

    def sigmoid(self) -> Tensor:
        """1 / (1 + e^-x) of each element."""
        return self.ops["sigmoid"](self)

    def relu(self) -> Tensor:
        """max(x, 0) of each element."""
        return self.ops["relu"](self)


def backward(seeds: Sequence[tuple[Tensor, Any]], *, retain: bool = False) -> None:
    """One backward pass from several tensors, each with its gradient (None: 1 for a scalar).

    A tensor that depends on nothing that requires a gradient adds nothing, but one of them must.
    """
    roots = [(source_of(tensor), tensor._seed(seed)) for tensor, seed in seeds if tensor.requires_grad]
    if seeds and not roots:
        raise GraphError(
            f"backward: this tensor of shape {seeds[0][0].shape} depends on nothing that requires a gradient "
            "(set requires_grad=True on an input, and do not compute under no_grad)"
        )
    replay(roots, retain=retain)
