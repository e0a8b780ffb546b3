"""A language model with more tokens than it has learned: rows for them in its embedding and its head.

A new row is drawn like the old ones: around their mean, as far from it as they are. So a new token is expected as much
as any other, and the model can tell it from all others at once. Nearer to the mean it is hard to learn: after 120 steps
on instructions ln P of the token that ends an answer was -4.7 with a tenth of the spread, -0.9 with the whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.language_model import TransformerLM
from chainrule.models.model import Model
from chainrule.nn.init import unfilled
from chainrule.random import generator

COLUMNS = 64  # at a time: in float64 the whole of a large table would take much memory


def with_tokens(
    model: Model, tokens: int, added: int, seed: int = 0, *, shared: bool = False
) -> TransformerLM:
    """The model for a vocabulary of `tokens`, of which the last `added` are new.

    Rows that the model has to spare are used before it grows. All but these tables are copies, or, `shared`, the
    parameters of the model itself.

    >>> import chainrule as cr
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=8, vocab_size=10)
    >>> cr.models.with_tokens(model, 12, added=2).config.vocab_size
    12
    """
    if not isinstance(model, TransformerLM):
        rule = "must be a transformer that writes, such as a gpt or a llama"
        raise ConfigError(f"{type(model).__name__}: takes no new tokens ({rule})")
    rows, known = model.config.vocab_size, tokens - added
    if known > rows:
        raise ConfigError(f"new tokens: {known} were known, the model has {rows} rows (must not be more)")
    with unfilled():
        grown = type(model)(replace(model.config, vocab_size=max(rows, tokens)))
    matrices = {id(model.embedding.weight), id(model.head.weight)}
    names = [name for name, param in model.named_parameters() if id(param) in matrices]
    arrays = model.arrays()
    tables = {name: _with_rows(arrays[name], known, tokens, seed, place) for place, name in enumerate(names)}
    if shared:
        grown.share(model, but=names)
    grown.load((grown if shared else model).arrays() | tables)
    return grown.train(model.training)


def _with_rows(matrix: Array, known: int, tokens: int, seed: int, place: int) -> Array:
    """matrix (V, C) -> (max(V, tokens), C), with new rows from `known` on"""
    old = matrix[:known]
    noise = generator("new tokens", place, seed=seed).standard_normal((tokens - known, matrix.shape[1]))
    for start in range(0, matrix.shape[1], COLUMNS):
        some = slice(start, start + COLUMNS)
        mean = old[:, some].mean(axis=0, dtype=np.float64)
        noise[:, some] = mean + (old[:, some] - mean).std(axis=0, dtype=np.float64) * noise[:, some]
    return np.concatenate([old, noise.astype(matrix.dtype), matrix[tokens:]])
