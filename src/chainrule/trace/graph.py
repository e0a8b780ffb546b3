"""A forward pass as a graph of op calls, recorded while it runs once on abstract arrays.

    graph = trace(model, ids=np.zeros((1, 8), int))
    [node.name for node in graph.nodes]         ['wte.embedding', 'wpe.embedding', 'add', 'h.0.ln_1.layernorm', …]

Nothing is computed: a model of any size is traced in milliseconds, its weights may be abstract too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from chainrule.autograd import Op, Param, Tensor, backend
from chainrule.autograd.abstract import memory_of
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array, Needs, Saved, Shape


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
    def __init__(self, given: dict[str, Any]) -> None:
        self.nodes: list[Node] = []
        self.sources: dict[int, Source] = {}  # by the identity of an array
        self.alive: list[Any] = []  # so that an identity stays one
        self.given = {memory_of(_array(x))[0]: Given(name) for name, x in given.items() if x is not None}
        for name, x in given.items():
            self._remember(x, Given(name))

    def add(
        self, op: Op, name: str, args: tuple[Any, ...], constants: dict[str, Any], results: list[Any]
    ) -> None:
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


def trace(function: Callable[..., Any], **given: Any) -> Graph:
    """The graph of `function(**given)`: arrays of ids, or Tensors; only their shapes matter."""
    recorder = _Recorder(given)
    before = mode.trace, mode.captures
    try:
        with backend("reference"):
            mode.trace, mode.captures = recorder, ()
            results = function(**given)
    finally:
        mode.trace, mode.captures = before
    results = results if isinstance(results, tuple) else (results,)
    return Graph(tuple(recorder.nodes), tuple([recorder.source(result) for result in results]))


def _array(x: Any) -> Any:
    array = x.array if isinstance(x, Tensor) else x
    return array if isinstance(array, np.ndarray) or array is None else np.asarray(array)
