"""Layer: parameters, sub-layers and a forward function, found by looking at its attributes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, Self, TypeVar

import numpy as np

from chainrule.autograd import Param, Parameters
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array
from chainrule.calls import Answering, answering_methods, misfit
from chainrule.errors import CheckpointError, ConfigError, ShapeError
from chainrule.torch_names import CPU, LAYER_METHODS, Elsewhere

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class HasForward(Protocol[P, R_co]):
    """For type checkers: anything with a `forward`."""

    @property
    def forward(self) -> Callable[P, R_co]: ...


class Layer(Answering):
    """Base of all layers and models.

    A subclass sets Params, Layers, and lists, tuples or dicts of Layers as attributes and defines `forward`.
    Names follow the attributes: `self.h = [Block(), Block()]` gives parameters such as `h.0.ln_1.weight`.
    Arrays that belong to the state but do not learn (running statistics) are attributes listed in `buffers`.

    >>> from chainrule import nn
    >>> layer = nn.Linear(3, 2)
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('weight', (2, 3)), ('bias', (2,))]
    """

    buffers: ClassVar[tuple[str, ...]] = ()

    training = True
    forward: Callable[..., Any]
    _name = ""  # the attribute of the parent that holds this layer: `attn`, `h.0`
    _block: Parameters | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        for _ in _walk(name, value):  # the walk names the layers it meets
            pass

    if TYPE_CHECKING:  # a layer is called as its own `forward` is: the same arguments, the same result

        @property
        def __call__(self: HasForward[P, R_co]) -> Callable[P, R_co]: ...

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            before = mode.scope  # what `with scope(self._name)` does, in a third of the time
            if self._name:
                mode.scope = f"{before}.{self._name}" if before else self._name
            elif mode.interventions and not before:  # a model, not a part of one
                for each in mode.interventions:
                    each.begin()
            try:
                return self.forward(*args, **kwargs)
            except TypeError as error:
                if wrong := misfit(type(self).__name__, inspect.signature(self.forward), args, kwargs):
                    raise wrong from error
                raise
            finally:
                mode.scope = before

    # -- what is inside -------------------------------------------------------------------------------------

    def named_layers(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """This layer, then all layers below it, with their paths (`h.0.attn`)."""
        yield prefix, self
        for name, part in self._parts():
            if isinstance(part, Layer):
                yield from part.named_layers(_join(prefix, name))

    def named_parameters(self) -> Iterator[tuple[str, Param]]:
        """All parameters with their paths; a parameter used in two places (tied) appears under both names."""
        for name, part in self._parts():
            if isinstance(part, Param):
                yield name, part
            else:
                yield from ((f"{name}.{path}", param) for path, param in part.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Array]]:
        """All buffers with their paths."""
        for path, layer in self.named_layers():
            for name in layer.buffers:
                yield _join(path, name), getattr(layer, name)

    def parameters(self) -> Parameters:
        """All parameters in one flat block, the same object until the set of (trainable) parameters changes.

        Parameters live in one block only, the one asked for last: ask the whole model, not its parts. An
        optimizer whose parameters have moved to another block says so.
        """
        named = dict(self.named_parameters())
        if self._block is None or not _fits(self._block, named):
            self._block = Parameters(named.items())
        return self._block

    def count(self, *, trainable: bool = False) -> int:
        """The number of parameters; tied ones count once."""
        unique = {id(p): p for _, p in self.named_parameters()}.values()
        return sum(p.size for p in unique if p.requires_grad or not trainable)

    def _parts(self) -> Iterator[tuple[str, Layer | Param]]:
        for name, value in vars(self).items():
            yield from _walk(name, value)

    # -- modes ----------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Training behavior (dropout on, batch statistics) here and below."""
        for _, layer in self.named_layers():
            layer.training = mode
        return self

    def eval(self) -> Self:
        """Evaluation behavior (no dropout, running statistics) here and below."""
        return self.train(False)

    def freeze(self) -> Self:
        """Stop learning: the parameters here and below get no gradient."""
        return self._set_trainable(False)

    def unfreeze(self) -> Self:
        """Let the parameters here and below get gradients."""
        return self._set_trainable(True)

    def _set_trainable(self, value: bool) -> Self:
        for _, param in self.named_parameters():
            param.requires_grad = value
        return self

    def to(self, dtype: Any) -> Self:
        """Convert parameters and buffers to float32 or float64 (for gradient checks); drops gradients."""
        try:
            dtype = np.dtype(dtype)
        except TypeError as error:  # such as "cpu"
            raise ConfigError(f"to: dtype {dtype!r} (must be a float dtype; {CPU})") from error
        if dtype.kind != "f":
            raise ConfigError(f"to: dtype {dtype} (must be a float dtype)")
        for _, param in self.named_parameters():
            param.array, param.grad, param.block = param.array.astype(dtype), None, None
            param.version += 1
        for _, layer in self.named_layers():
            layer._block = None
            for name in layer.buffers:
                setattr(layer, name, getattr(layer, name).astype(dtype))
        return self

    # -- state ----------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """All parameters and buffers by name: the arrays themselves, which the next step changes."""
        return {name: param.array for name, param in self.named_parameters()} | dict(self.named_buffers())

    def state(self) -> dict[str, Array]:
        """Copies of all parameters and buffers by name, for a checkpoint."""
        return {name: array.copy() for name, array in self.arrays().items()}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take all values of `state()`; names and shapes must match exactly. Changes all or nothing."""
        self.check_state(state)
        for name, array in self.arrays().items():
            array[...] = state[name]
        for _, param in self.named_parameters():
            param.version += 1

    def share(self, other: Layer, *, but: Collection[str] = ()) -> None:
        """Have the parameters of `other`, those objects and no copies, except those named in `but`; copy its buffers.

        Names and shapes must match. What one of the two learns the other knows, and what learns is what learns here:
        a part that was frozen in `other` is free again.
        """
        theirs = {name: param for name, param in other.named_parameters() if name not in but}
        self.check_state(other.arrays() | {name: a for name, a in self.arrays().items() if name in but})
        for name, param in self.named_parameters():
            if name in theirs:
                theirs[name].requires_grad = param.requires_grad
        for path, layer in self.named_layers():
            for name, value in list(vars(layer).items()):
                if any(isinstance(part, Param) for _, part in _walk(name, value)):
                    setattr(layer, name, _exchanged(_join(path, name), value, theirs))
        of_other = dict(other.named_buffers())
        for name, buffer in self.named_buffers():
            buffer[...] = of_other[name]

    def state_dict(self) -> dict[str, Array]:
        """`state()` by the name that PyTorch uses."""
        return self.state()

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """`load()` by the name that PyTorch uses."""
        self.load(state)

    def zero_grad(self) -> None:
        """Zero the gradients of the parameters here and below, wherever they live."""
        for _, param in self.named_parameters():
            param.zero_grad()

    def check_state(self, state: Mapping[str, Array]) -> None:
        """Refuse what `load` cannot take."""
        arrays = self.arrays()
        wrong = {
            "missing": [name for name in arrays if name not in state],
            "unknown": [name for name in state if name not in arrays],
        }
        if any(wrong.values()):
            what = "; ".join(f"{kind} {_first(names)}" for kind, names in wrong.items() if names)
            raise CheckpointError(f"load: state does not fit {type(self).__name__} ({what})")
        for name, array in arrays.items():
            if np.shape(state[name]) != array.shape:
                raise ShapeError(f"load: {name} has shape {array.shape}, state has {np.shape(state[name])}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A layer of its own: new parameters with the same values, in no block yet."""
        for _, param in self.named_parameters():
            if id(param) not in memo:
                twin = Param(param.array, param.name, decay=param.decay, dtype=param.dtype)
                twin.requires_grad = param.requires_grad
                memo[id(param)] = twin
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        for name, value in vars(self).items():
            if name not in ("_block", "_name"):
                setattr(new, name, copy.deepcopy(value, memo))
        return new

    # -- text -----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        first, *rest = self._tree()
        return "\n".join([f"{first}, {self.count():,} parameters", *rest])

    def _tree(self) -> list[str]:
        """This layer and its parameters, then its sub-layers, equal neighbors of a list as one."""
        parts = list(self._parts())
        own = ", ".join(f"{name} {p.shape}" for name, p in parts if isinstance(p, Param))
        lines = [f"{type(self).__name__}({own})" if own else type(self).__name__]
        trees = [(name, part._tree()) for name, part in parts if isinstance(part, Layer)]
        for (_, tree), group in groupby(trees, key=lambda item: (_stem(item[0]), item[1])):
            names = [name for name, _ in group]
            label = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
            lines += [f"  {label}: {tree[0]}", *(f"  {line}" for line in tree[1:])]
        return lines


Module = Layer  # PyTorch's name


answering_methods(Layer)
for _name, _meant in LAYER_METHODS.items():
    setattr(Layer, _name, Elsewhere(_name, _meant))


def _walk(name: str, value: Any) -> Iterator[tuple[str, Layer | Param]]:
    """The Params and Layers in an attribute's value; each Layer learns its name on the way."""
    if isinstance(value, Param):
        yield name, value
    elif isinstance(value, Layer):
        object.__setattr__(value, "_name", name)
        yield name, value
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _walk(f"{name}.{i}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(f"{name}.{key}", item)


def _exchanged(name: str, value: Any, params: Mapping[str, Param]) -> Any:
    """An attribute's value with other parameters in the places of its own, by their names."""
    if isinstance(value, Param):
        return params.get(name, value)
    if isinstance(value, list | tuple):
        return type(value)(_exchanged(f"{name}.{i}", item, params) for i, item in enumerate(value))
    if isinstance(value, dict):
        return {key: _exchanged(f"{name}.{key}", item, params) for key, item in value.items()}
    return value


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name  # `h` of `h.0`


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _first(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if names[3:] else "")


def _fits(block: Parameters, named: dict[str, Param]) -> bool:
    """Does the block hold exactly these parameters, grouped as they are trained now?"""
    if list(block.named) != list(named) or block.grad.size != block.learned():
        return False
    order = [(not p.requires_grad, not p.decay) for p in block.unique]
    return order == sorted(order) and all(block.named[n] is p and block.holds(p) for n, p in named.items())
