"""The memory that decoding takes, by formula: of weights in a format, and of what is remembered of each token.

matrix (out, in)    ⌈out / 32⌉ · 32 · ⌈in / 32⌉ · 32 · bits / 8        bits 32, 16, 8.5, 5, 4.5 …
cache of a token    4 · heads · (D + ⌈D / 32⌉ · 32) in each layer      keys and values of its key/value heads; in bf16
                    half of it, in int8 a quarter and 4 · heads · (1 + ⌈D / 32⌉) for scales

`trace.count.running_memory` counts the numbers of a model alone; this is what the C++ extension allocates for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.generate.engine.plan import decoder_graph, is_limited
from chainrule.generate.engine.weights import (
    PANEL,
    by_format,
    check_cache,
    check_format,
    format_of,
    panel_words,
)
from chainrule.models import Model
from chainrule.trace.lower import lower
from chainrule.trace.terms import Instruction, Unsupported, Weight

PAGE = 64  # tokens of a page of the cache, as in native/decode/decode.hpp


class Footprint(NamedTuple):
    """Bytes that a decoder holds."""

    weights: int
    """Packed matrices, and all else that does not depend on the texts."""
    token: int
    """Of the cache, for each token of each sequence."""
    sequence: int
    """Of the state of a recurrent model, for each sequence."""

    def total(self, sequences: int, tokens: int) -> int:
        """With so many sequences of so many tokens each, in whole pages"""
        return self.weights + sequences * (self.sequence + -(-tokens // PAGE) * PAGE * self.token)


def footprint(model: Model, weights: str = "fp32", cache: str = "fp32") -> Footprint:
    """The memory of a decoder of this model; its weights need not be there (`Model.abstract`).

    >>> import chainrule as cr
    >>> from chainrule.generate.engine.memory import footprint
    >>> config = cr.models.LlamaConfig(n_layer=30, n_head=9, n_kv_head=3, n_embd=576, n_hidden=1536, vocab_size=49152)
    >>> footprint(cr.models.Llama.abstract(config), "int8")
    Footprint(weights=143058176, token=46080, sequence=0)
    """
    check_format(weights)
    check_cache(cache)
    graph = decoder_graph(model)
    try:
        program = lower(graph)
    except (
        Unsupported
    ):  # run in NumPy, in float32, with copies of all parameters and a cache that is not padded
        return Footprint(4 * model.count(), 0, 0)
    matrices = sum(_matrices(program, weights).values())
    positions = model.context if is_limited(graph) else 0
    tables = {step.arguments["frequency"].tobytes() for step in program if _turns(step)}
    rest = sum(array.nbytes for step in program for array in _vectors(step.arguments))
    angles = sum(
        2 * 4 * positions * len(table) // 8 for table in tables
    )  # cos and sin; frequencies are float64
    return Footprint(
        matrices + rest + angles, sum(_token(step, cache) for step in program), sum(map(_sequence, program))
    )


def matrix_bytes(shape: tuple[int, int], weights: str) -> int:
    """Of a matrix (out, in) in panels"""
    return 4 * -(-shape[0] // PANEL) * panel_words(weights, shape[1])


def _matrices(program: list[Instruction], weights: str) -> dict[tuple[int, ...], int]:
    """The bytes of each matrix, by its parameters: a tied one counts once"""
    found = {}
    for step in program:
        for matrix in (step.arguments[name] for name in ("table", "weight") if name in step.arguments):
            found[matrix.key] = sum(
                matrix_bytes((rows, matrix.shape[1]), format) for format, rows in _rows(step, matrix, weights)
            )
    return found


def _rows(step: Instruction, matrix: Weight, weights: str) -> list[tuple[str, int]]:
    """What is packed alone: its format and its rows"""
    if step.name == "linear":
        return [(format, sum(map(len, run))) for format, run in by_format(matrix.parts, weights)]
    format, rows = format_of(matrix.parts, weights), matrix.shape[0]
    return [(format, 2 * rows // 3), (format, rows // 3)] if _is_gru(step) else [(format, rows)]


def _is_gru(step: Instruction) -> bool:
    """Whether the rows of its candidate are a matrix of their own"""
    return step.arguments.get("kind") == "gru" and not step.arguments["reset_after"]


def _vectors(x: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Arrays in the arguments of a step, but for frequencies"""
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, dict):
        yield from (y for name, value in x.items() if name != "frequency" for y in _vectors(value))
    elif isinstance(x, tuple | list):
        yield from (y for value in x for y in _vectors(value))


def _turns(step: Instruction) -> bool:
    return step.arguments.get("frequency") is not None


def _token(step: Instruction, cache: str) -> int:
    if step.name != "attention":
        return 0
    D = step.out.width // step.arguments["heads"]
    heads, numbers = int(step.arguments["kv_heads"]), D + _whole(D)
    scales = 4 * (1 + _whole(D) // PANEL) if cache == "int8" else 0
    return heads * (numbers * {"fp32": 4, "bf16": 2, "int8": 1}[cache] + scales)


def _sequence(step: Instruction) -> int:
    if step.name != "recurrent":
        return 0
    return 4 * _whole(step.out.width) * (2 if step.arguments["kind"] == "lstm" else 1)


def _whole(n: int) -> int:
    return n + -n % PANEL
