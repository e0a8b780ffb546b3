"""Decoder: a model that remembers what it has read, so that each new token costs one pass over the weights.

    decoder = Decoder(model, weights="int8")
    logits = decoder.prefill(prompt)                    (1, V): scores of what follows the prompt
    logits = decoder.step([token])                      (1, V): and after one more token

A row of logits has the same bits whether a sequence is read at once or in pieces, alone or beside others, by any
number of threads: with the C++ kernels every sum runs in a fixed order that depends on that sequence alone. A model in
float64 is run in NumPy, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from chainrule.errors import ChainruleError, ConfigError, DataError, ShapeError
from chainrule.generate.compiled import compiled, runs
from chainrule.generate.interpreter import Interpreter
from chainrule.generate.weights import Floats, check_format
from chainrule.models import GPT, Llama

Ids = npt.NDArray[np.integer[Any]]


class Engine(Protocol):
    """What runs a program: the C++ extension, or the interpreter in NumPy."""

    def run(self, logits: Floats, tokens: Ids, sequences: Ids, counts: Ids, past: Ids) -> None:
        """The next counts[i] tokens follow the past[i] of cache sequences[i]; logits[i] come after the last one"""

    def copy(self, source: int, target: int, count: int) -> None:
        """The first `count` positions of a cache, for another sequence too"""


class Decoder:
    """A model's weights as they are now, in one of the formats of `generate.weights`, and `batch` caches.

    >>> import chainrule as cr
    >>> model = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10))
    >>> decoder = cr.generate.Decoder(model, weights="int8", batch=2)
    >>> decoder.prefill([[1, 2, 3], [4]]).shape, decoder.step([5, 6]).shape, decoder.lengths.tolist()
    ((2, 10), (2, 10), [4, 2])
    """

    def __init__(self, model: GPT | Llama, weights: str = "fp32", batch: int = 1) -> None:
        if not isinstance(batch, int) or batch < 1:
            raise ConfigError(f"Decoder: batch is {batch!r} (must be an integer, at least 1)")
        if not isinstance(model, GPT | Llama):
            raise ConfigError(f"Decoder: got {type(model).__name__} (must be a GPT or Llama)")
        check_format(weights)
        if weights != "fp32" and not all(np.isfinite(p.array).all() for _, p in model.named_parameters()):
            raise ChainruleError(f"Decoder: the model's weights are not finite, {weights} cannot hold them")
        self.context = model.config.block_size
        self.vocab_size = model.config.vocab_size
        self.lengths = np.zeros(batch, np.int64)
        """Tokens that each sequence's cache holds."""
        self.dtype = next(p.array.dtype for _, p in model.named_parameters())
        make = compiled if runs(self.dtype) else Interpreter
        self._engine: Engine = make(model.program(), weights, batch, self.context)

    def prefill(
        self, ids: npt.ArrayLike | Sequence[npt.ArrayLike], slots: Sequence[int] | None = None
    ) -> Floats:
        """Read more tokens of each sequence -> logits after the last one, a row for each sequence

        `ids` is a list of sequences, of any lengths from 1 up, or for a single sequence its tokens. They go to the
        caches `slots`, by default all of them in order.
        """
        slots = range(len(self.lengths)) if slots is None else slots
        if not hasattr(ids, "__len__"):
            raise DataError(f"Decoder: tokens {ids!r} (must be a list of tokens, or of such lists)")
        if len(slots) == 0 or np.asarray(slots).dtype.kind not in "iu":
            raise ShapeError(f"Decoder: slots {list(slots)} (must be one or more integers)")
        single = len(slots) == 1 and all(np.ndim(i) == 0 for i in ids)  # type: ignore[union-attr]
        pieces = [np.asarray(piece) for piece in ([ids] if single else ids)]  # type: ignore[union-attr]
        return self._read(pieces, np.asarray(slots, np.int64))

    def step(self, tokens: npt.ArrayLike, slots: Sequence[int] | None = None) -> Floats:
        """One more token of each sequence, (B,) -> logits (B, V)"""
        return self.prefill(np.reshape(tokens, (-1, 1)), slots)

    def reset(self, slot: int | None = None) -> None:
        """Forget one sequence, or all."""
        if slot is not None:
            self._check_slot(slot)
        self.lengths[slice(None) if slot is None else slot] = 0

    def copy(self, source: int, target: int) -> None:
        """What one cache holds, in another one too."""
        for slot in (source, target):
            self._check_slot(slot)
        self._engine.copy(source, target, int(self.lengths[source]))
        self.lengths[target] = self.lengths[source]

    def _check_slot(self, slot: int) -> None:
        if slot not in range(len(self.lengths)):
            raise ShapeError(f"Decoder: slot {slot} (must be from 0 to {len(self.lengths) - 1})")

    def _read(self, pieces: list[Ids], slots: Ids) -> Floats:
        if len(pieces) != len(slots) or len(set(slots.tolist())) < len(slots):
            raise ShapeError(
                f"Decoder: {len(pieces)} sequences for slots {slots.tolist()} (must be one each)"
            )
        for piece in pieces:
            if piece.ndim != 1 or piece.size == 0 or piece.dtype.kind not in "iu":
                raise DataError(
                    f"Decoder: tokens of shape {piece.shape}, {piece.dtype} (must be one or more integers)"
                )
            if piece.min() < 0 or piece.max() >= self.vocab_size:
                raise DataError(
                    f"Decoder: token {piece[(piece < 0) | (piece >= self.vocab_size)][0]} "
                    f"(must be from 0 to {self.vocab_size - 1})"
                )
        if slots.min() < 0 or slots.max() >= len(self.lengths):
            raise ShapeError(f"Decoder: slots {slots.tolist()} (must be from 0 to {len(self.lengths) - 1})")
        counts, past = np.array([len(piece) for piece in pieces]), self.lengths[slots]
        if (past + counts).max() > self.context:
            raise DataError(
                f"Decoder: {(past + counts).max()} tokens (the model's context is {self.context})"
            )
        logits = np.empty((len(slots), self.vocab_size), self.dtype)
        self._engine.run(logits, np.concatenate(pieces).astype(np.int32), slots, counts, past)
        self.lengths[slots] += counts
        return logits
