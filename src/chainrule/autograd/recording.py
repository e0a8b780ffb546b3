"""Recordings: a step runs op by op once while its kernel calls are kept; a replay makes them again, without Python.

The same kernels in the same order on the same memory give the same bits. What could differ from step to step must
therefore pass through kernels. A recording trusts nothing else: a kernel that reads an array which no kernel made, and
which the recording was not told of, breaks it (see native/runtime/recording.hpp). What ran meanwhile is valid anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule import native, random
from chainrule.autograd.mode import mode, switched
from chainrule.autograd.types import Array


class Recording:
    """Kernel calls and the memory they work on.

    >>> import chainrule as cr, numpy as np
    >>> x, found = np.ones(3, np.float32), Recording()
    >>> found.know(x)
    >>> with found.recorded():
    ...     y = cr.ops.silu(x)
    >>> x[:] = 0
    >>> found.replay()
    >>> y.tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(self, beside: Recording | None = None) -> None:
        """With the memory of another one, `beside`, if there is one that is never replayed at the same time."""
        self._calls: Any = native.kernels().Recording() if beside is None else beside._calls.beside()
        self._kept: list[Array] = []  # kernels have their addresses only
        self._constants: set[int] = set()

    @property
    def broken(self) -> str:
        """Why it cannot be replayed; empty if it can."""
        return str(self._calls.broken)

    @property
    def calls(self) -> int:
        """How many kernels a replay calls."""
        return int(self._calls.calls)

    @property
    def bytes(self) -> int:
        """The memory that is its own and that of those beside it."""
        return int(self._calls.bytes)

    def fail(self, reason: str) -> None:
        """Something cannot be repeated: drop what was recorded."""
        self._calls.fail(reason)

    def know(self, *arrays: Array) -> None:
        """Let kernels work on these arrays, which stay in place: parameters, and inputs that a replay fills anew."""
        for array in arrays:
            self._kept.append(array)
            self._calls.know(array)

    def knows(self, array: Any) -> bool:
        """True for an array of a kernel, or one that it was told of."""
        return isinstance(array, np.ndarray) and bool(self._calls.knows(array))

    def guard(self, array: Array) -> None:
        """Note when this array is changed (`touched`)."""
        self._calls.guard(array)

    @property
    def touched(self) -> bool:
        """The last replay has changed the array that is guarded, even if it did not come to its end."""
        return bool(self._calls.touched)

    def know_constant(self, array: Array) -> None:
        """Let kernels read an array that is the same in every step."""
        self.know(array)
        self._constants.add(address(array))

    def is_constant(self, array: Any) -> bool:
        """True for what `know_constant` was told."""
        return isinstance(array, np.ndarray) and address(array) in self._constants

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Keep every kernel call inside."""
        drawn = random.watched(lambda: self.fail("random numbers that NumPy draws"))
        with self._begun(records=True), switched(mode, "recording", self), drawn:
            yield

    def memory(self) -> Any:
        """Compute inside in the memory of the recording, without keeping anything: it is free between replays."""
        return self._begun(records=False)

    @contextmanager
    def _begun(self, records: bool) -> Iterator[None]:
        self._calls.begin(*random.place(), records)
        try:
            yield
        finally:
            self._calls.end()

    def replay(self) -> None:
        """Call the kernels again; dropout draws the masks of the present step."""
        self._calls.replay(*random.place())


def address(array: Array) -> int:
    """Where the array begins in memory."""
    return int(array.__array_interface__["data"][0])


def constant(array: Array, *of: Any) -> Array:
    """`array`, which is the same in every step of these shapes: positions, tables of angles.

    One that is computed of others, `of`, is so if they are.
    """
    if mode.recording is not None and all(mode.recording.is_constant(each) for each in of):
        mode.recording.know_constant(array)
    return array


def fail(reason: str) -> None:
    """The recording of this thread, if there is one, cannot be repeated."""
    if mode.recording is not None:
        mode.recording.fail(reason)


def locked(x: Array) -> Array:
    """A view of x that cannot be written to."""
    view = np.asarray(x).view()
    view.setflags(write=False)
    return view


def contiguous(x: Array) -> Array:
    """x in C order: itself, or a copy."""
    return x if x.flags.c_contiguous else copied(x)


def copied(x: Array) -> Array:
    """A copy of x in C order, by a kernel if it is to be repeated."""
    if mode.recording is None or x.dtype != np.float32:
        return np.array(x, order="C")
    y = native.empty(x.shape)
    native.kernels().copy(y, x)
    return y


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    """x in another shape: a view, or a copy that is made again by a replay."""
    y = x.reshape(shape)
    return y if mode.recording is None or np.may_share_memory(x, y) else copied(x).reshape(shape)


def assign(y: Array, x: Array) -> None:
    """y[...] = x, of one shape, by a kernel if it is to be repeated."""
    if mode.recording is not None and x.dtype == y.dtype == np.float32 and mode.recording.knows(y):
        native.kernels().copy(y, x)
    else:
        y[...] = x


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array to be filled, in memory of the recording if there is one."""
    return np.empty(shape, dtype) if mode.recording is None or dtype != np.float32 else native.empty(shape)


def zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Zeros, by a kernel if they are to be written again."""
    return np.zeros(shape, dtype) if mode.recording is None or dtype != np.float32 else native.cleared(shape)


def check_views(name: str, outputs: Iterable[Any], inputs: Iterable[Any]) -> None:
    """What NumPy computes cannot be repeated, except for views of the inputs, whose memory kernels fill."""
    if mode.recording is None:
        return
    held = [x for x in inputs if isinstance(x, np.ndarray)]
    for y in outputs:
        if y is not None and not mode.recording.knows(y) and not any(np.may_share_memory(x, y) for x in held):
            fail(f"{name} is computed by NumPy")


class Input(np.lib.mixins.NDArrayOperatorsMixin):
    """An input of a recording, which every replay fills anew: ids, targets, masks, states.

    Ops take it. Its shape may be read, and views may be taken; whatever else is read or computed of its values would be
    a constant of the recording, and breaks it.
    """

    def __init__(self, values: Array) -> None:
        self.values = values
        self.shape, self.ndim, self.dtype, self.size = values.shape, values.ndim, values.dtype, values.size

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self._view(self.values[index], "an index")

    def reshape(self, *shape: Any) -> Any:
        return self._view(self.values.reshape(*shape), "reshape")

    def _view(self, found: Any, what: str) -> Any:
        if isinstance(found, np.ndarray) and np.may_share_memory(found, self.values):
            return Input(found)
        return self._read(what, found)

    @staticmethod
    def _read(what: str, found: Any) -> Any:
        fail(f"NumPy reads an input: {what}")
        return found

    def __getattr__(self, name: str) -> Any:
        return self._read("asarray" if name.startswith("__") else name, getattr(self.values, name))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._read("asarray", np.array(self.values, dtype=dtype, copy=copy))  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return self._read("bool", bool(self.values))  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return self._read("iter", iter(self.values))  # type: ignore[no-any-return]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self._read(ufunc.__name__, getattr(ufunc, method)(*map(_plain, inputs), **options))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = func(*_plain(args), **{key: _plain(value) for key, value in kwargs.items()})
        return found if func in (np.shape, np.ndim, np.size) else self._read(func.__name__, found)


def _plain(value: Any) -> Any:
    """Arrays in place of inputs."""
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value.values if isinstance(value, Input) else value


def settled(value: Any) -> Array:
    """An array for an op to keep until backward: what may change is copied.

    An input of a recording stays as it is, and so does an array that was made read-only.
    """
    if isinstance(value, Input):
        return value.values
    array = np.asarray(value)
    if stays(value) or (array.flags.owndata and not array.flags.writeable):
        return array
    different = tuple([slice(None) if step else slice(1) for step in array.strides])  # repeated values once
    return np.broadcast_to(array[(..., *different)].copy(), array.shape)


def stays(value: Any) -> bool:
    """True for an input or a constant of the recording of this thread: kernels may read it again in a replay."""
    if isinstance(value, Input):
        return True
    return mode.recording is not None and mode.recording.is_constant(value)
