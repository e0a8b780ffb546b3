"""Tensor: an array, a gradient, and the place on the tape where it was computed."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.methods import Methods
from chainrule.autograd.recording import copied, fail
from chainrule.autograd.tape import Done, Hook, Record, add, replay, source_of
from chainrule.autograd.types import Array, Into, Shape, is_float
from chainrule.calls import Answering, answering_methods
from chainrule.errors import ChainruleError, DataError, GraphError, ShapeError


class Tensor(Methods, Answering):
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

    array: Array
    grad: Array | None
    record: Record | None  # the call that computed this tensor; None for a leaf
    block: Any = None  # the flat block of a parameter

    def __init__(self, data: Any, requires_grad: bool = False, dtype: Any = None, name: str = "") -> None:
        if isinstance(data, Tensor):
            data = data.array
        try:
            if dtype is None and not isinstance(data, np.ndarray | np.generic):
                kind = np.asarray(data).dtype
                dtype = np.float32 if kind.kind == "f" else kind
            array = np.array(data, dtype=dtype, order="C")
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, ChainruleError):
                raise
            raise DataError(f"Tensor: cannot make an array of {type(data).__name__} ({error})") from error
        if array.dtype.kind not in "fiub":
            raise DataError(f"Tensor: the data are of dtype {array.dtype} (must be numbers)")
        self.array = array
        self._begin(name)
        self.requires_grad = requires_grad

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

    def _begin(self, name: str) -> None:
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
        tensor.array = array
        tensor._begin("")
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
        fail("a value is read by Python")
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
        fail("a value is read by Python")
        return self.array

    def item(self) -> float:
        """The value of a tensor with one element as a Python number."""
        if self.array.size != 1:
            raise ShapeError(f"item: tensor of shape {self.shape} has {self.size} elements (must have one)")
        fail("a value is read by Python")
        return self.array.item()  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        fail("a value is read by Python")
        return self.array.tolist()

    def detach(self) -> Tensor:
        """The same values, detached from the graph."""
        return Tensor.wrap(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.requires_grad:
            raise GraphError(
                f"{self.name or 'Tensor'}: NumPy would drop the gradient of this tensor (use cr.ops, or .numpy())"
            )
        fail("a value is read by NumPy")
        return np.array(self.array, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ShapeError("len: a tensor of shape () has no length (must have at least one axis)")
        return len(self.array)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"bool: tensor of shape {self.shape} has {self.size} elements (must have one: use .all() or .any())"
            )
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

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
        if seed is None:
            if self.size != 1:
                raise GraphError(
                    f"backward: output has shape {self.shape} (must be a scalar, or pass the gradient of its consumer)"
                )
            return np.array(1, self.dtype, ndmin=self.ndim)  # each axis is of size 1
        grad = np.asarray(seed, dtype=self.dtype)
        if grad.shape != self.shape:
            raise ShapeError(
                f"backward: seed has shape {grad.shape}, output has shape {self.shape} (must be equal)"
            )
        return grad

    def accumulate(self, grad: Array) -> None:
        """Add `grad` into `.grad`."""
        if self.grad is None:
            self.grad = copied(grad)  # the same array may be the gradient of another tensor
        else:
            self.grad = add(self.grad, grad, out=self.grad)

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


answering_methods(Tensor)


def backward(seeds: Sequence[tuple[Tensor, Any]], *, retain: bool = False, done: Done | None = None) -> None:
    """One backward pass from several tensors, each with its gradient (None: 1 for a scalar).

    A tensor that depends on nothing that requires a gradient adds nothing, but one of them must. `done(leaf)` is called
    while the pass goes on, as soon as the gradient of a leaf is complete.
    """
    roots = [(source_of(tensor), tensor._seed(seed)) for tensor, seed in seeds if tensor.requires_grad]
    if seeds and not roots:
        raise GraphError(
            f"backward: this tensor of shape {seeds[0][0].shape} depends on nothing that requires a gradient "
            "(set requires_grad=True on an input, and do not compute under no_grad)"
        )
    replay(roots, retain=retain, done=done)
