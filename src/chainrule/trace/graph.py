"""A forward pass as a graph of op calls, recorded while it runs once on abstract arrays.

    graph = trace(model, ids=np.zeros((1, 8), int))
    [node.name for node in graph.nodes]         ['wte.embedding', 'wpe.embedding', 'add', 'h.0.ln_1.layernorm', …]

Nothing is computed: a model of any size is traced in milliseconds, its weights may be abstract too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from chainrule.autograd import Op, Param, Tensor, backend
from chainrule.autograd.abstract import memory_of
from chainrule.autograd.capture import Calls
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array, Needs, Saved, Shape
from chainrule.errors import GraphError


class NotStreamable(GraphError):
    """A forward pass that cannot read a text token by token: it reads all of it again for each token."""


class Opaque(NDArrayOperatorsMixin):
    """An array that shows its shape; its numbers are for ops alone, since a trace does not see what NumPy computes."""

    def __init__(self, array: Array) -> None:
        self.hidden = array
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size

    def __len__(self) -> int:
        return len(self.hidden)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotStreamable(
            f"trace: NumPy reads the numbers of an array {self.shape} (must be computed by cr.ops to be traced)"
        )

    __array__ = __array_ufunc__ = __getitem__ = __bool__ = __int__ = __float__ = __index__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


class Value(NamedTuple):
    """An output of an earlier node."""

    node: int
    output: int = 0


class Given(NamedTuple):
    """An input of the traced function."""

    name: str


Source: TypeAlias = Value | Given | Param | Array | None


@dataclass(frozen=True, eq=False)
class Node:
    """One call of an op."""

    op: Op
    layer: str
    """The layer that called it, `h.0.attn.c_attn`."""
    inputs: tuple[Source, ...]
    constants: dict[str, Any]
    """Keyword arguments; those that are an input of the traced function are `Given`."""
    arrays: tuple[Any, ...]
    """The inputs; only shapes and dtypes are known."""
    shapes: tuple[Shape, ...]
    """Of the outputs."""
    needs: Needs = ()
    """Which inputs get a gradient."""
    kept: Saved = ()
    """What waits for the backward pass."""

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.op.name}" if self.layer else self.op.name


@dataclass(frozen=True, eq=False)
class Graph:
    """The calls in their order, and what the traced function returned."""

    nodes: tuple[Node, ...]
    outputs: tuple[Source, ...]

    def names(self) -> list[str]:
        """Of each node the name of its call, as `capture` has it: the second call of `h.0.add` is `h.0.add#2`."""
        calls = Calls()
        return [calls.unique(node.name) for node in self.nodes]

    def parameters(self) -> Iterator[tuple[Param, Node, int]]:
        """Each parameter with the first call that uses it, and at which place."""
        seen: set[int] = set()
        for node in self.nodes:
            for place, source in enumerate(node.inputs):
                if isinstance(source, Param) and id(source) not in seen:
                    seen.add(id(source))
                    yield source, node, place

    def origins(self) -> list[frozenset[str]]:
        """Of each node the inputs of the traced function that it depends on."""
        found: list[frozenset[str]] = []
        for node in self.nodes:
            sources = (*node.inputs, *node.constants.values())
            found.append(frozenset().union(*(origin(source, found) for source in sources)))
        return found


def origin(source: Any, origins: list[frozenset[str]]) -> frozenset[str]:
    """The inputs of the traced function that a source depends on, by those of all nodes."""
    if isinstance(source, Value):
        return origins[source.node]
    return frozenset([source.name] if isinstance(source, Given) else [])


class _Recorder:
    def __init__(self, given: dict[str, Any], opaque: bool) -> None:
        self.opaque = opaque
        self.nodes: list[Node] = []
        self.sources: dict[int, Source] = {}  # by the identity of an array
        self.alive: list[Any] = []  # so that an identity stays one
        self.given = {memory_of(_array(x))[0]: Given(name) for name, x in given.items() if x is not None}
        for name, x in given.items():
            self._remember(x, Given(name))

    def opened(
        self, args: tuple[Any, ...], constants: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not self.opaque:
            return args, constants
        return tuple(map(_opened, args)), {key: _opened(value) for key, value in constants.items()}

    def closed(self, x: Any) -> Any:
        """A result or an input as the traced function sees it."""
        if not self.opaque or x is None:
            return x
        return Tensor.wrap(Opaque(x.array)) if isinstance(x, Tensor) else Opaque(x)  # type: ignore[arg-type]

    def add(
        self, op: Op, name: str, args: tuple[Any, ...], constants: dict[str, Any], results: list[Any]
    ) -> list[Any]:
        record = getattr(results[0], "record", None)
        self.nodes.append(
            Node(
                op,
                name.removesuffix(op.name).removesuffix("."),
                tuple([self.source(arg) for arg in args]),
                {key: self._constant(value) for key, value in constants.items()},
                tuple([_array(arg) for arg in args]),
                tuple([result.shape for result in results]),
                () if record is None else record.needs,
                () if record is None else record.saved,
            )
        )
        for i, result in enumerate(results):
            self._remember(result, Value(len(self.nodes) - 1, i))
        return [self.closed(result) for result in results]

    def source(self, arg: Any) -> Source:
        if arg is None or isinstance(arg, Param):
            return arg
        return self.sources.get(id(_array(arg)), _array(arg))

    def _constant(self, value: Any) -> Any:
        known = isinstance(value, np.ndarray) and self.given.get(memory_of(value)[0])
        return known or value

    def _remember(self, x: Any, source: Source) -> None:
        if x is not None:
            self.sources[id(_array(x))] = source
            self.alive.append(x)


def trace(function: Callable[..., Any], *, opaque: bool = False, **given: Any) -> Graph:
    """The graph of `function(**given)`: arrays of ids, or Tensors; only their shapes matter.

    `opaque` refuses a function that computes anything of them outside of ops; it needs no gradients.
    """
    recorder = _Recorder(given, opaque)
    before = mode.trace, mode.captures, mode.interventions
    try:
        with backend("reference"):
            mode.trace, mode.captures, mode.interventions = recorder, (), ()
            results = function(**{name: recorder.closed(x) for name, x in given.items()})
    finally:
        mode.trace, mode.captures, mode.interventions = before
    results = results if isinstance(results, tuple) else (results,)
    return Graph(tuple(recorder.nodes), tuple([recorder.source(_opened(result)) for result in results]))


def _opened(x: Any) -> Any:
    array: Any = x.array if isinstance(x, Tensor) else x
    if not isinstance(array, Opaque):
        return x
    return Tensor.wrap(array.hidden) if isinstance(x, Tensor) else array.hidden


def _array(x: Any) -> Any:
    array = x.array if isinstance(x, Tensor) else x
    return array if isinstance(array, np.ndarray) or array is None else np.asarray(array)
