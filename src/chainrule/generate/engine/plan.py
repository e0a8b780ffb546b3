"""How a model decodes: its forward pass, traced once, and packed if the extension has instructions for all of it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.abstract import abstract
from chainrule.autograd.mode import mode
from chainrule.errors import ConfigError, Setting
from chainrule.generate.engine.program import UNLIMITED, Compiler, runs
from chainrule.generate.engine.weights import (
    Floats,
    check_cache,
    check_format,
    format_of,
    not_finite,
    rounded,
)
from chainrule.generate.sampling import SAMPLE
from chainrule.models import Model
from chainrule.trace import Graph, trace
from chainrule.trace.by_token import check_by_token
from chainrule.trace.cost import ATTENTION, RECURRENT
from chainrule.trace.interpreter import Interpreter
from chainrule.trace.lengths import Table, trace_lengths
from chainrule.trace.lower import lower
from chainrule.trace.terms import Unsupported
from chainrule.types import Ids


class Engine(Protocol):
    """What runs new tokens: a `Program` of the extension, or the interpreter in NumPy."""

    def run(
        self,
        result: Floats,
        tokens: Ids,
        sequences: Ids,
        counts: Ids,
        past: Ids,
        sources: Ids | None = None,
        kept: Ids | None = None,
    ) -> None:
        """The next counts[i] tokens follow the past[i] of sequences[i], about sources[i] -> result, logits of the last
        kept[i] of them, by default of the last one"""

    def read(self, memory: Floats, counts: Ids) -> None:
        """Source i is the next counts[i] rows of memory"""

    def copy(self, source: int, target: int, count: int) -> None:
        """The first `count` positions of a sequence, for another one too"""

    def truncate(self, sequence: int, count: int) -> None:
        """Forget what a sequence holds after its first `count` positions"""

    def pages(self) -> tuple[int, int, int, int]:
        """Pages of the cache in use, at most (0 for no limit), positions and bytes of each; zeros without pages"""

    def grow(self, sequences: int) -> None:
        """Memory for more sequences"""


class Plan:
    """A model's weights as they are now, in one of the formats of `weights`, ready for any number of engines."""

    def __init__(self, model: Model, weights: str = "fp32") -> None:
        check_format(weights)
        self.dtype = next(p.dtype for _, p in model.named_parameters())
        self.vocab_size = int(model.config.vocab_size)
        self.graph = decoder_graph(model)
        self.weights = weights
        self.context = model.context if is_limited(self.graph) else UNLIMITED
        self.recurrent = any(node.op.name in RECURRENT for node in self.graph.nodes)
        """True if a state stands for all tokens before, so that none of them can be forgotten."""
        self._compiler: Compiler | None = None
        self._interpreter: Interpreter | None = None
        if runs(self.dtype):
            with suppress(Unsupported):  # the interpreter runs anything
                self._compiler = Compiler(lower(self.graph), weights, self.context)
        if self._compiler is None:
            self._interpreter = self._interpreted()

    @property
    def before(self) -> int:
        """Positions of a cache that a prefix or a soft prompt takes before the first token."""
        return self._compiler.before if self._compiler is not None else 0

    def _interpreted(self) -> Interpreter:
        def kept(weight: Floats) -> Floats:
            format = format_of((weight,), self.weights)
            with np.errstate(over="ignore", invalid="ignore"):
                found = np.array(rounded(weight, format))
            if format != "fp32" and not np.isfinite(found).all():
                raise not_finite(format)
            return found

        return Interpreter(self.graph, kept)

    @property
    def compiled(self) -> bool:
        """The extension runs it, unless `capture` looks inside or `intervene` changes what it computes."""
        inside = mode.captures or mode.interventions
        return self._compiler is not None and mode.backend == "native" and not inside

    def open(self, sequences: int, cache_memory: int | None = None, cache: str = "fp32") -> Engine:
        """An engine for so many sequences that hold nothing yet, with at most so many bytes for the cache of all; keys
        and values are held in the format `cache`."""
        check_cache(cache)
        if cache != "fp32" and (self.recurrent or not self.compiled):
            why = "a recurrent model has no cache" if self.recurrent else "NumPy runs this model"
            raise ConfigError(SAMPLE, Setting("cache"), f" is {cache} (must be fp32: {why})")
        if self.compiled and self._compiler is not None:
            engine: Engine = self._compiler.open(sequences, cache_memory or 0, cache)
            return engine
        if cache_memory is not None and self.context < UNLIMITED:
            rule = "must be left out: only the C++ extension limits a cache, and NumPy runs this model"
            raise ConfigError(SAMPLE, Setting("cache_memory"), f" is {cache_memory:,} bytes ({rule})")
        self._interpreter = self._interpreter or self._interpreted()
        return self._interpreter.fresh()


def decoder_graph(model: Model) -> Graph:
    """What a model computes of ids (1, T), and of the memory (1, S, C) of a source if it reads one."""

    def traced(ids: int, memory: int = 0) -> Graph:
        # Two traces have different tokens: what is computed from them, and is no embedding, shows as a difference.
        tokens = np.full((1, ids), ids % 2 if model.config.vocab_size > 1 else 0)
        given: dict[str, Any] = {"ids": tokens}
        if memory:
            dtype = next(p.dtype for _, p in model.named_parameters())
            given["memory"] = Tensor.wrap(abstract((1, memory, model.config.n_embd), dtype))
        return trace(lambda **given: model.decoder(*given.values()), opaque=True, **given)

    length = model.context
    lengths = {"ids": length} | ({"memory": length} if "source" in model.reads else {})
    with model.answering():
        graph = trace_lengths(traced, **lengths)
    check_by_token(graph)
    return graph


def is_limited(graph: Graph) -> bool:
    """A cache and tables by position end somewhere; the state of a recurrent model does not."""
    return any(
        node.op.name in ATTENTION
        or any(isinstance(x, Table) for x in (*node.inputs, *node.constants.values()))
        for node in graph.nodes
    )
