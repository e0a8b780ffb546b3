"""Translations: an encoder-decoder reads its sources once, then generates token by token.

    translation = Translation(model, source, source_mask)
    logits = translation.read(tokens)                   (B, V): scores of what follows, a row for each source
    translation.keep(rows)                              continue these rows only, in this order, some of them twice

Keys and values of the sources are computed once, those of the tokens written so far when they are read.
"""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt

from chainrule.autograd import no_grad
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.generate.beam import Beam, search
from chainrule.generate.engine.assign import assign
from chainrule.generate.engine.plan import Engine, Plan
from chainrule.generate.engine.weights import check_cache
from chainrule.models import EncoderDecoder
from chainrule.types import Ids


class Translator:
    """A model that is ready to translate: its weights are packed once, for any number of translations.

    It has the weights as they are now: after a step of training make another one. A model in training mode is copied,
    to be without dropout. `weights` is the format of the decoder's, `cache` that of the keys and values of what it
    writes; the encoder runs once per source, as it is.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.Seq2SeqConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> translator = cr.generate.Translator(cr.models.Seq2Seq(config))
    >>> [len(cr.generate.translate(translator, sources, start=1, end=2)) for sources in ([[5, 6]], [[7], [8]])]
    [1, 2]
    """

    def __init__(self, model: EncoderDecoder, weights: str = "fp32", cache: str = "fp32") -> None:
        if not isinstance(model, EncoderDecoder):
            raise ConfigError(f"Translation: got {type(model).__name__} (must be a Seq2Seq or a T5)")
        self.model = copy.deepcopy(model).eval() if model.training else model
        self.config = model.config
        self.cache = check_cache(cache)
        self.plan = Plan(self.model, weights)

    def start(self, source: npt.ArrayLike, mask: Array | None) -> tuple[int, Engine]:
        """source (B, S), mask (B, S) -> B, and an engine that has read them, with a cache for each"""
        with no_grad():
            memory = self.model.encode(np.asarray(source), mask).numpy()  # (B, S, C)
        B, S, C = memory.shape
        # What is hidden need not be there: without positions of its own, attention does not see the gap.
        visible = memory.reshape(-1, C) if mask is None else memory[mask]
        engine = self.plan.open(max(1, B), cache=self.cache)
        engine.read(np.ascontiguousarray(visible), np.full(B, S) if mask is None else mask.sum(axis=1))
        return B, engine


class Translation:
    """Sources and what has been written for each of them so far.

    For many batches of sources make one `Translator` of the model first.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.Seq2SeqConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> translation = cr.generate.Translation(cr.models.Seq2Seq(config), np.array([[5, 6, 7], [8, 9, 0]]))
    >>> translation.read([1, 1]).shape                  # both begin with token 1
    (2, 10)
    >>> translation.keep([0, 0, 1])                     # two ways to continue the first source
    >>> translation.read([3, 4, 5]).shape
    (3, 10)
    """

    def __init__(
        self,
        model: EncoderDecoder | Translator,
        source: npt.ArrayLike,
        source_mask: npt.ArrayLike | None = None,
    ) -> None:
        translator = model if isinstance(model, Translator) else Translator(model)
        self.config = translator.config
        self.dtype = translator.plan.dtype
        B, self._engine = translator.start(source, None if source_mask is None else np.asarray(source_mask))
        self.caches = list(range(B))
        """The cache of each row; rows about one source share its keys and values: a beam that forks copies little."""
        self._total = max(1, B)
        self.length = 0
        """Tokens of each target read so far."""
        self.owners = np.arange(B)
        """The source that each row translates."""

    def read(self, tokens: npt.ArrayLike, every: bool = False) -> Array:
        """One more token of each row (B,), or several (B, T) -> logits of what follows the last one (B, V)

        With `every`, of what follows each of them (B, T, V).
        """
        ids = np.asarray(tokens)
        ids = ids[:, None] if ids.ndim == 1 else ids
        if ids.ndim != 2 or len(ids) != len(self.owners) or ids.dtype.kind not in "iu":
            given = f"tokens {np.shape(tokens)} {ids.dtype} for {len(self.owners)} rows"
            raise ShapeError(f"Translation: {given} (must be integers (B,) or (B, T))")
        T, limit, V = ids.shape[1], self.config.block_size, self.config.vocab_size
        if not 1 <= T <= limit - self.length:
            rule = f"must end within block_size, {limit}"
            raise ShapeError(f"Translation: {T} tokens from position {self.length} ({rule})")
        if (wrong := ids[(ids < 0) | (ids >= V)]).size:
            raise DataError(f"Translation: token {wrong[0]} (must be from 0 to {V - 1})")
        B = len(ids)
        kept = np.full(B, T if every else 1)
        logits = np.empty((kept.sum(), V), self.dtype)
        tokens = np.ascontiguousarray(ids, np.int32).reshape(-1)
        counts, past = np.full(B, T), np.full(B, self.length)
        if B:
            self._engine.run(logits, tokens, np.array(self.caches), counts, past, self.owners, kept)
        self.length += T
        return logits.reshape(B, T, V) if every else logits

    def truncate(self, length: int) -> None:
        """Forget what has been read after the first `length` tokens of each row."""
        if length not in range(self.length + 1):
            raise ShapeError(f"Translation: truncate to {length!r} (must be from 0 to {self.length})")
        self.length = length

    def keep(self, rows: npt.ArrayLike) -> None:
        """Row i becomes what row rows[i] is now: a row left out ends, a row named twice forks."""
        chosen = np.asarray(rows, np.int64 if np.size(rows) == 0 else None)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise ShapeError(f"Translation: rows {chosen.shape} {chosen.dtype} (must be one row of integers)")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(self.owners)):
            raise DataError(f"Translation: rows {chosen.tolist()} (must be from 0 to {len(self.owners) - 1})")
        if len(chosen) > self._total:
            self._total = len(chosen)
            self._engine.grow(self._total)
        self.caches, copies = assign(self.caches, chosen.tolist(), self._total)
        for source, target in copies:
            self._engine.copy(source, target, self.length)
        self.owners = self.owners[chosen]


def translate(
    model: EncoderDecoder | Translator,
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
    `max_new_tokens`, by default as many as the model can generate.
    """
    limit = model.config.block_size
    steps = limit if max_new_tokens is None else max_new_tokens
    if not 1 <= steps <= limit:
        raise ConfigError(f"translate: max_new_tokens is {steps} (must be from 1 to block_size, {limit})")
    options = Beam(width=beam, length_penalty=length_penalty, max_new_tokens=steps, stop_tokens=(end,))
    translation = Translation(model, source, source_mask)
    found = search(translation, [[start]] * len(translation.owners), options)
    return [np.array(best.tokens, np.int32) for best, *_ in found]
