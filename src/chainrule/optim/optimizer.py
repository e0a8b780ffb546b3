"""The base of all optimizers: one pass over the flat block, state by name, a step count."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from chainrule import native
from chainrule.calls import Answering, answering_methods
from chainrule.errors import CheckpointError, ConfigError, GraphError, ShapeError
from chainrule.optim.tensors import Learned, as_block
from chainrule.types import Array

Betas = tuple[float, float]  # how much two averages keep of the past, each from 0 to below 1

CHUNK = 1 << 16  # elements per update: a chunk of values, gradients and state stays in the cache
NOT_NUMBERS = (str, bytes, bool, np.bool_)  # though `float` takes them


class Optimizer(Answering):
    """Base of the optimizers: a subclass names its state arrays in `slots` and moves one chunk in `update`.

    Every update is elementwise, so the order of chunks does not change the result.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    # update(w, g, state, lr, decays): change the values w in place by their gradients g; state holds the same chunk of
    # every slot. One that names a parameter `scale` multiplies the gradients by it, as the kernels do while they read
    # them; any other gets them multiplied.
    update: Callable[..., None]

    weight_decay: float

    def __init__(self, params: Learned, lr: float) -> None:
        self.params = as_block(self._name, params, inspect.signature(type(self)).parameters)
        self.lr = self._non_negative("lr", lr)
        self.steps = 0
        self._compiled = False  # asked once a step: a list of tensors must look at all of them
        self._asked: tuple[object, bool] = (None, False)  # a function, and whether it takes a scale
        self.arrays = self._new_arrays()
        # They grow when they are used: the dtype is known then, without `grad`, which joins a list of tensors.
        self._scratch: Array = np.empty(0)
        self._product: Array = np.empty(0)

    def _new_arrays(self) -> dict[str, Array]:
        grads = self.params.grad  # of what learns: there is no state for frozen parameters
        return {slot: native.zeros(grads.size, grads.dtype) for slot in self.slots}

    def step(self, lr: float | None = None, *, scale: float = 1.0) -> None:
        """Update every trainable parameter once, at the rate `lr` (of a schedule) or at `self.lr`.

        A group with a rate of its own keeps its ratio to `self.lr`. Each gradient counts `scale` times: to clip them in
        this way (`clip_factor`) saves a pass over memory.
        """
        self._check_block()
        rate = self.lr if lr is None else self._non_negative("lr", lr)
        scale = self._non_negative("scale", scale)
        self.steps += 1
        self._compiled = self.params.kernels() is not None
        scales = self._scales()
        options = {"scale": scale} if scales else {}
        # The kernels split the work among threads themselves; multiplied gradients are a copy of one chunk at a time.
        whole = self.kernels is not None and (scales or scale == 1)
        for values, grads, span, decays, settings in self.params.pieces():
            chunk = max(1, values.size) if whole else CHUNK
            with self._in_group(settings, rate) as own:
                for start in range(0, values.size, chunk):
                    stop = min(start + chunk, values.size)
                    there = slice(span.start + start, span.start + stop)
                    state = tuple(self.arrays[slot][there] for slot in self.slots)
                    some = grads[start:stop] if scales else self.scaled(grads[start:stop], scale)
                    self.update(values[start:stop], some, state, own, decays, **options)
        self.params.changed()

    def _scales(self) -> bool:
        """Whether `update` multiplies gradients itself; it may be another function than in the last step."""
        function = getattr(self.update, "__func__", self.update)
        if function is not self._asked[0]:
            self._asked = function, _takes_scale(self.update)
        return self._asked[1]

    def scaled(self, gradients: Array, scale: float) -> Array:
        """A chunk of gradients, `scale` times."""
        if scale == 1:
            return gradients
        if self._product.size < gradients.size:
            self._product = np.empty_like(gradients)
        return np.multiply(gradients, scale, out=self._product[: gradients.size])

    def rehearse(self, lr: float | None = None) -> Iterator[tuple[int, Array]]:
        """The next step without taking it: where each chunk of the state begins, and by how much its values would move.

        Of values and state there is a copy of one chunk at a time.
        """
        self._check_block()
        rate = self.lr if lr is None else self._non_negative("lr", lr)
        self._compiled = self.params.kernels() is not None
        for values, grads, span, decays, settings in self.params.pieces():
            for start in range(0, values.size, CHUNK):
                some = slice(start, min(start + CHUNK, values.size))
                new, place = values[some].copy(), span.start + start
                with (
                    self._ahead(slice(place, place + new.size)) as state,
                    self._in_group(settings, rate) as own,
                ):
                    self.update(new, grads[some], state, own, decays)
                yield place, new - values[some]

    @contextmanager
    def _ahead(self, chunk: slice) -> Iterator[tuple[Array, ...]]:
        """In here the optimizer is one step further, with a copy of a chunk of its state."""
        self.steps += 1
        try:
            yield tuple(self.arrays[slot][chunk].copy() for slot in self.slots)
        finally:
            self.steps -= 1

    @contextmanager
    def _in_group(self, group: Mapping[str, Any], rate: float) -> Iterator[float]:
        """In here the settings of a group count, if it has any; its learning rate."""
        settings = dict(group)
        if (own := settings.pop("lr", None)) is not None:
            rate = rate * own / self.lr if self.lr else own
        before = {name: getattr(self, name) for name in settings}
        vars(self).update(settings)
        try:
            yield rate
        finally:
            vars(self).update(before)

    def zero_grad(self) -> None:
        """Zero all gradients in one pass."""
        self.params.zero_grad()

    def state(self) -> dict[str, Array]:
        """For a checkpoint: copies of the step count (`steps`) and the state arrays (`m.h.0.ln_1.weight`)."""
        return {name: array.copy() for name, array in self.views().items()}

    def views(self) -> dict[str, Array]:
        """The same without copies: good until the next step."""
        return {"steps": np.array(self.steps)} | dict(self._views())

    def load(self, state: Mapping[str, Array]) -> None:
        """Restore a `state()`; names and shapes must match. Loads all or nothing."""
        views = dict(self._views())
        expected = {"steps", *views}
        if wrong := sorted(expected ^ set(state)):
            missing = [name for name in wrong if name in expected]
            what, names = ("lacks", missing) if missing else ("has the unknown", wrong)
            raise CheckpointError(
                f"{self._name}: the saved state {what} {', '.join(names[:3])}{' ...' if names[3:] else ''} "
                "(must be saved by the same optimizer with the same trainable parameters)"
            )
        for name, view in views.items():
            if state[name].shape != view.shape:
                raise ShapeError(
                    f"{self._name}: {name} has shape {view.shape}, state has {state[name].shape}"
                )
        for name, view in views.items():
            view[...] = state[name]
        self.steps = int(state["steps"])

    def state_dict(self) -> dict[str, Array]:
        """`state()` by the name that PyTorch uses."""
        return self.state()

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """`load()` by the name that PyTorch uses."""
        self.load(state)

    def scratch(self, like: Array) -> Array:
        """A temporary array of the size of a chunk, reused by every chunk."""
        if self._scratch.size < like.size:
            self._scratch = np.empty_like(like)
        return self._scratch[: like.size]

    def require(self, holds: bool, setting: str, value: object, rule: str) -> None:
        """Refuse a setting that violates its rule."""
        if not holds:
            raise ConfigError(f"{self._name}: {setting} is {value!r} (must be {rule})")

    @property
    def kernels(self) -> Any:
        """The C++ kernels if they can do this step, else None. They give the same bits as NumPy."""
        return native.kernels() if self._compiled else None

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _non_negative(self, setting: str, value: Any) -> float:
        """The value of a setting as a float; what is no finite number from 0 on is refused."""
        try:
            refused = isinstance(value, NOT_NUMBERS) or np.ndim(value) or np.asarray(value).dtype.kind == "b"
            number = math.nan if refused else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        self.require(0 <= number < math.inf, setting, value, "a finite number, at least 0")
        return number

    def _check_block(self) -> None:
        if name := self.params.moved():
            raise GraphError(
                f"{self._name}: {name} has moved to another block since this optimizer was made "
                "(make a new one from model.parameters())"
            )

    def _views(self) -> Iterator[tuple[str, Array]]:
        """The state of each trainable parameter by name, as views into the flat state arrays."""
        for slot, flat in self.arrays.items():
            for name, param in self.params.items():
                if param.requires_grad:
                    start = self.params.offsets[id(param)]
                    yield f"{slot}.{name}", flat[start : start + param.size].reshape(param.shape)

    def __repr__(self) -> str:
        members = getattr(self.params, "members", ())  # of groups, which may have rates of their own
        rates = sorted({settings.get("lr", self.lr) for _, settings in members}) or [self.lr]
        return f"<{self._name} lr={' and '.join(f'{rate:g}' for rate in rates)}, {self.steps} steps done>"


def _takes_scale(update: Callable[..., None]) -> bool:
    """Whether it names a parameter `scale`; that of what it wraps does not count, since the wrapper is called."""
    return "scale" in inspect.signature(update, follow_wrapped=False).parameters


answering_methods(Optimizer)
