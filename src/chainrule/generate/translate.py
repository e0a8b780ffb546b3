"""Translations: an encoder-decoder reads its sources once, then writes token by token.

    translation = Translation(model, source, source_mask)
    logits = translation.read(tokens)                   (B, V): scores of what follows, a row for each source
    translation.keep(rows)                              go on with these rows only, in this order, some of them twice

Keys and values of the sources are computed once, those of the tokens written so far when they are read.
R-333, R-480, R-481 (seed 004 §9.10, §12.2.5, §12.2.9)
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.autograd import Tensor, no_grad
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.generate.beam import Beam, search
from chainrule.models import Seq2Seq
from chainrule.nn import MultiHeadAttention

Ids = npt.NDArray[np.integer[Any]]


class Fixed:
    """Keys and values of the sources, the same for every token: computed the first time."""

    def __init__(self) -> None:
        self.kept: tuple[Tensor, Tensor] | None = None

    def read(self, layer: MultiHeadAttention, source: Tensor) -> tuple[Tensor, Tensor]:
        if self.kept is None:
            self.kept = layer.keys_values(source)
        return self.kept

    def take(self, rows: Ids) -> None:
        if self.kept is not None:
            k, v = self.kept
            self.kept = Tensor(k.numpy()[rows]), Tensor(v.numpy()[rows])


class Growing:
    """Keys and values of all tokens read so far, in arrays with room for more."""

    def __init__(self) -> None:
        self.length = 0
        self.arrays: list[Array] = []  # keys and values, (B, H, room, D) each

    def read(self, layer: MultiHeadAttention, source: Tensor) -> tuple[Tensor, Tensor]:
        new = [x.numpy() for x in layer.keys_values(source)]  # (B, H, T, D)
        stop = self.length + new[0].shape[2]
        if not self.arrays or stop > self.arrays[0].shape[2]:
            self.arrays = [self._roomy(i, x, 2 * stop) for i, x in enumerate(new)]
        for array, x in zip(self.arrays, new, strict=True):
            array[:, :, self.length : stop] = x
        self.length = stop
        k, v = (Tensor.wrap(array[:, :, :stop]) for array in self.arrays)
        return k, v

    def take(self, rows: Ids) -> None:
        self.arrays = [array[rows] for array in self.arrays]

    def _roomy(self, i: int, x: Array, room: int) -> Array:
        B, H, _, D = x.shape
        larger = np.empty((B, H, room, D), x.dtype)
        if self.arrays:
            larger[:, :, : self.length] = self.arrays[i][:, :, : self.length]
        return larger


class Translation:
    """Sources and what has been written for each of them so far.

    A model in training mode is copied, to be without dropout; any other is used as it is.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.Seq2SeqConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> translation = cr.generate.Translation(cr.models.Seq2Seq(config), np.array([[5, 6, 7], [8, 9, 0]]))
    >>> translation.read([1, 1]).shape                  # both begin with token 1
    (2, 10)
    >>> translation.keep([0, 0, 1])                     # two ways to go on with the first source
    >>> translation.read([3, 4, 5]).shape
    (3, 10)
    """

    def __init__(
        self, model: Seq2Seq, source: npt.ArrayLike, source_mask: npt.ArrayLike | None = None
    ) -> None:
        if not isinstance(model, Seq2Seq):
            raise ConfigError(f"Translation: got {type(model).__name__} (must be a Seq2Seq)")
        self.model = copy.deepcopy(model).eval() if model.training else model
        self.mask = None if source_mask is None else np.asarray(source_mask)  # (B, S)
        with no_grad():
            self.memory = self.model.encode(np.asarray(source), self.mask)  # (B, S, C)
        self.caches = [(Growing(), Fixed()) for _ in range(model.config.n_layer)]
        self.length = 0
        """Tokens of each target read so far."""
        self.owners = np.arange(len(self.memory))
        """Of which source each row is a translation."""

    def read(self, tokens: npt.ArrayLike) -> Array:
        """One more token of each row (B,), or several (B, T) -> logits of what follows the last one (B, V)"""
        ids = np.asarray(tokens)
        ids = ids[:, None] if ids.ndim == 1 else ids
        if ids.ndim != 2 or len(ids) != len(self.owners) or ids.dtype.kind not in "iu":
            raise ShapeError(
                f"Translation: tokens {np.shape(tokens)} {ids.dtype} for {len(self.owners)} rows "
                "(must be integers (B,) or (B, T))"
            )
        with no_grad():
            hidden = self.model.decode(ids, self.memory, self.mask, caches=self.caches, start=self.length)
            logits: Array = self.model.logits(hidden[:, -1]).numpy()
        self.length += ids.shape[1]
        return logits

    def keep(self, rows: npt.ArrayLike) -> None:
        """Row i becomes what row rows[i] is now: a row left out ends, a row named twice forks."""
        chosen = np.asarray(rows, np.int64 if np.size(rows) == 0 else None)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise ShapeError(f"Translation: rows {chosen.shape} {chosen.dtype} (must be integers)")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(self.owners)):
            raise DataError(f"Translation: rows {chosen.tolist()} (must be from 0 to {len(self.owners) - 1})")
        owners = self.owners[chosen]
        for past, _ in self.caches:
            past.take(chosen)
        if not np.array_equal(
            owners, self.owners
        ):  # beams that only change places keep what they know of the source
            for _, source in self.caches:
                source.take(chosen)
            self.memory = Tensor(self.memory.numpy()[chosen])
            self.mask = None if self.mask is None else self.mask[chosen]
        self.owners = owners


def translate(
    model: Seq2Seq,
    source: npt.ArrayLike,
    source_mask: npt.ArrayLike | None = None,
    *,
    start: int,
    end: int,
    max_new_tokens: int | None = None,
    beam: int = 1,
    length_penalty: float = 0.6,
) -> list[Ids]:
    """source (B, S) -> the best translation of each, up to `end`, which is left out

    Found by a search of width `beam` (`generate.beam`); 1 takes the likeliest token again and again. At most
    `max_new_tokens`, by default as many as the model can write.
    """
    limit = model.config.block_size
    steps = limit if max_new_tokens is None else max_new_tokens
    if not 1 <= steps <= limit:
        raise ConfigError(f"translate: max_new_tokens is {steps} (must be from 1 to block_size, {limit})")
    options = Beam(width=beam, length_penalty=length_penalty, max_new_tokens=steps, stop_tokens=(end,))
    translation = Translation(model, source, source_mask)
    found = search(translation, [[start]] * len(translation.owners), options)
    return [np.array(best.tokens, np.int32) for best, *_ in found]
