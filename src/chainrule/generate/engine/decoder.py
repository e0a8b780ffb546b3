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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.errors import CacheFull, ConfigError, DataError, Setting, ShapeError
from chainrule.generate.engine.plan import Plan
from chainrule.generate.engine.program import UNLIMITED
from chainrule.generate.engine.weights import Floats, check_cache
from chainrule.generate.sampling import SAMPLE
from chainrule.models import LanguageModel
from chainrule.types import Ids


class Pages(NamedTuple):
    """The pages of a decoder's KV cache; all 0 for a recurrent model, or without the extension."""

    held: int
    """In use; one that sequences share counts once."""
    free: int | None
    """May still be taken; None without a limit."""
    positions: int
    """Tokens of a page."""
    bytes: int
    """Of a page."""


class Decoder:
    """A model's weights as they are now, in one of the formats of `engine.weights`, and `batch` caches.

    The caches take pages of a fixed number of tokens as they grow, `cache_memory` bytes for all of them at most; what
    does not fit raises `CacheFull` before anything is computed. Sequences that `copy` has made alike share pages until
    one of them writes into a page. Keys and values are held in the format `cache`: fp32, bf16, or int8 with scales of
    their own for each token and head.

    >>> import chainrule as cr
    >>> model = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10))
    >>> decoder = cr.generate.Decoder(model, weights="int8", batch=2)
    >>> decoder.prefill([[1, 2, 3], [4]]).shape, decoder.step([5, 6]).shape, decoder.lengths.tolist()
    ((2, 10), (2, 10), [4, 2])
    """

    def __init__(
        self,
        model: LanguageModel,
        weights: str = "fp32",
        batch: int = 1,
        *,
        cache_memory: int | None = None,
        cache: str = "fp32",
    ) -> None:
        for name, value in (("batch", batch), ("cache_memory", cache_memory)):
            if (value is not None or name == "batch") and (not isinstance(value, int) or value < 1):
                raise ConfigError(f"Decoder: {name} is {value!r} (must be an integer, at least 1)")
        if not isinstance(model, LanguageModel):
            raise ConfigError(f"Decoder: got {type(model).__name__} (must be a language model)")
        check_cache(cache)  # before all weights are packed
        plan = Plan(model, weights)
        self.context = plan.context
        """Tokens that a cache holds at most."""
        self.limited = plan.context < UNLIMITED
        """False for a recurrent model, whose state has no end."""
        self.vocab_size = plan.vocab_size
        self.lengths = np.zeros(batch, np.int64)
        """Tokens that each sequence has read."""
        self.dtype = plan.dtype
        self._recurrent = plan.recurrent
        self._limited_memory = cache_memory is not None
        self._engine = plan.open(batch, cache_memory, cache)
        if (page := self.pages).free == 0:
            least = f"must be at least a page of {page.positions} tokens, {page.bytes:,}"
            raise ConfigError(SAMPLE, Setting("cache_memory"), f" is {cache_memory:,} bytes ({least})")
        self.most_tokens = self.context
        """Tokens of one sequence at most: the context, or fewer if `cache_memory` holds fewer."""
        if page.free is not None:
            self.most_tokens = min(self.context, page.free * page.positions - plan.before)

    @property
    def pages(self) -> Pages:
        """How much of the cache is in use."""
        held, most, positions, size = self._engine.pages()
        limited = self._limited_memory and size > 0
        return Pages(held, most - held if limited else None, positions, size)

    def prefill(
        self,
        ids: npt.ArrayLike | Sequence[npt.ArrayLike],
        sequences: Sequence[int] | None = None,
        every: bool | Sequence[bool] = False,
    ) -> Floats:
        """Read more tokens of each sequence -> logits after the last one, a row for each sequence

        `ids` is a list of sequences, of any lengths from 1 up, or for a single sequence its tokens. They go to the
        caches of `sequences`, by default all of them in order. With `every` there is a row after each of the new
        tokens, those of the first sequence first: for all sequences, or for those where a list says so.
        """
        sequences = range(len(self.lengths)) if sequences is None else sequences
        if not hasattr(ids, "__len__"):
            raise DataError(f"Decoder: tokens {ids!r} (must be a list of tokens, or of such lists)")
        if len(sequences) == 0 or np.asarray(sequences).dtype.kind not in "iu":
            raise ShapeError(f"Decoder: sequences {list(sequences)} (must be one or more integers)")
        single = len(sequences) == 1 and all(np.ndim(i) == 0 for i in ids)  # type: ignore[union-attr]
        pieces = [np.asarray(piece) for piece in ([ids] if single else ids)]  # type: ignore[union-attr]
        return self._read(pieces, np.asarray(sequences, np.int64), every)

    def step(self, tokens: npt.ArrayLike, sequences: Sequence[int] | None = None) -> Floats:
        """One more token of each sequence, (B,) -> logits (B, V)"""
        return self.prefill(np.reshape(tokens, (-1, 1)), sequences)

    def reset(self, sequence: int | None = None) -> None:
        """Forget one sequence, or all."""
        if sequence is not None:
            self._check_sequence(sequence)
        for each in range(len(self.lengths)) if sequence is None else (sequence,):
            self._engine.truncate(each, 0)
            self.lengths[each] = 0

    def truncate(self, sequence: int, length: int) -> None:
        """Forget what a sequence has read after its first `length` tokens."""
        self._check_sequence(sequence)
        held = int(self.lengths[sequence])
        if length not in range(held + 1):
            raise ShapeError(
                f"Decoder: truncate sequence {sequence} to {length!r} (must be from 0 to {held})"
            )
        if self._recurrent and length not in (0, held):
            rule = f"must be 0 or {held}: a recurrent state cannot go back"
            raise ConfigError(f"Decoder: truncate sequence {sequence} to {length} ({rule})")
        self._engine.truncate(sequence, length)
        self.lengths[sequence] = length

    def copy(self, source: int, target: int) -> None:
        """What one cache holds, in another one too."""
        for sequence in (source, target):
            self._check_sequence(sequence)
        self._engine.copy(source, target, int(self.lengths[source]))
        self.lengths[target] = self.lengths[source]

    def _check_sequence(self, sequence: int) -> None:
        if sequence not in range(len(self.lengths)):
            raise ShapeError(f"Decoder: sequence {sequence} (must be from 0 to {len(self.lengths) - 1})")

    def _read(self, pieces: list[Ids], sequences: Ids, every: bool | Sequence[bool]) -> Floats:
        listed, V = sequences.tolist(), self.vocab_size
        if len(pieces) != len(listed) or len(set(listed)) < len(listed):
            raise ShapeError(f"Decoder: {len(pieces)} texts for sequences {listed} (must be one each)")
        for piece in pieces:
            if piece.ndim != 1 or piece.size == 0 or piece.dtype.kind not in "iu":
                given = f"tokens of shape {piece.shape}, {piece.dtype}"
                raise DataError(f"Decoder: {given} (must be one or more integers)")
            if piece.min() < 0 or piece.max() >= V:
                wrong = piece[(piece < 0) | (piece >= V)][0]
                raise DataError(f"Decoder: token {wrong} (must be from 0 to {V - 1})")
        if min(listed) < 0 or max(listed) >= len(self.lengths):
            raise ShapeError(f"Decoder: sequences {listed} (must be from 0 to {len(self.lengths) - 1})")
        counts, past = np.array([len(piece) for piece in pieces]), self.lengths[sequences]
        if (most := (past + counts).max()) > self.context:
            raise DataError(f"Decoder: {most} tokens (the model's context is {self.context})")
        if not isinstance(every, bool) and len(every) != len(listed):
            raise ShapeError(
                f"Decoder: every has {len(every)} entries for sequences {listed} (must be one each)"
            )
        kept = np.where(every, counts, 1)
        logits = np.empty((kept.sum(), V), self.dtype)
        tokens = np.concatenate(pieces).astype(np.int32)
        try:
            self._engine.run(logits, tokens, sequences, counts, past, kept=kept)
        except RuntimeError as error:
            if native.available() and isinstance(error, native.kernels().OutOfPages):
                fix = "wait until a sequence ends, or give more cache_memory"
                raise CacheFull(f"Decoder: the cache is full, {error} ({fix})") from None
            raise
        self.lengths[sequences] += counts
        return logits
