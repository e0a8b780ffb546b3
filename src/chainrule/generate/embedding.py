"""Vectors of texts: what a BERT makes of a text, pooled to one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.data import SpecialIds, segmented
from chainrule.data.batches.segmented import text_limit
from chainrule.errors import ConfigError
from chainrule.models import BERTEmbedder, Model
from chainrule.models.bert.body import BERT
from chainrule.models.bert.heads import body_of
from chainrule.models.bert.pooling import POOLINGS, pool, unit
from chainrule.text import Tokenizer
from chainrule.types import Ids

Vectors = npt.NDArray[np.float32]


def embed(
    model: Model,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    pooling: str | None = None,
    normalize: bool | None = None,
    batch_size: int = 32,
    tell: Callable[[int], None] = lambda texts: None,
) -> Vectors:
    """texts -> their vectors (N, C)

    `pooling` and `normalize` are those of the model unless given: of a `BERTEmbedder` as its config says, of another
    model with a BERT inside the mean of all rows, of length 1. Of a text beyond the model's context its beginning is
    read. `tell` is called with the number of texts done.

    >>> import chainrule as cr
    >>> tokenizer = cr.text.WordPieceTokenizer.train("the cat sat on the mat", 40)
    >>> model = cr.models.make("bert", n_layer=1, n_head=2, n_embd=16, vocab_size=tokenizer.vocab_size)
    >>> cr.generate.embed(model, tokenizer, ["the cat", "the mat", ""]).shape
    (3, 16)
    """
    _body(model)  # which says what has none
    rows = [tokenizer.encode(text) for text in texts]
    return embed_ids(
        model, tokenizer, rows, pooling=pooling, normalize=normalize, batch_size=batch_size, tell=tell
    )


def embed_ids(
    model: Model,
    tokenizer: Tokenizer,
    rows: Sequence[Ids],
    *,
    pooling: str | None = None,
    normalize: bool | None = None,
    batch_size: int = 32,
    tell: Callable[[int], None] = lambda texts: None,
) -> Vectors:
    """The same of texts that are encoded already, each (n,) without [CLS] and [SEP]."""
    body = _body(model)
    ours: Any = model.config if isinstance(model, BERTEmbedder) else None
    pooling = pooling or (ours.pooling if ours else "mean")
    if pooling not in POOLINGS:
        raise ConfigError.of("embed", {"pooling": pooling}, f"must be one of {', '.join(POOLINGS)}")
    if batch_size < 1:
        raise ConfigError.of("embed", {"batch_size": batch_size}, "must be at least 1")
    if normalize is None:
        normalize = ours.normalize if ours else True
    special = SpecialIds.of(tokenizer.special_ids)
    limit = text_limit((ours.max_length if ours else None) or body.config.block_size, 1)
    rows = [row[:limit] for row in rows]
    found = np.empty((len(rows), body.config.n_embd), np.float32)
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]))  # little padding
    with model.answering():
        for first in range(0, len(rows), batch_size):
            chosen = by_length[first : first + batch_size]
            batch = segmented([rows[i] for i in chosen], [None] * len(chosen), special)
            vectors = pool(body(*batch), batch.mask, pooling)
            found[chosen] = (unit(vectors) if normalize else vectors).numpy()
            tell(first + len(chosen))
    return found


def _body(model: Model) -> BERT:
    body = body_of(model)
    if body is None:
        rule = "must be a model with a BERT inside, such as one of sentence-transformers"
        raise ConfigError(f"embed: {type(model).__name__} ({rule})")
    return body


def nearest(vectors: Vectors, n: int) -> tuple[npt.NDArray[np.int64], Vectors]:
    """vectors (N, C) -> of each the n others with the largest cosine (N, n), the nearest first, and these cosines

    >>> import numpy as np
    >>> from chainrule.generate.embedding import nearest
    >>> nearest(np.array([[1, 0], [2, 1], [0, 3]], np.float32), 1)[0].tolist()
    [[1], [0], [1]]
    """
    N = len(vectors)
    n = min(n, N - 1)
    directions = np.asarray(unit(vectors))
    places, cosines = np.empty((N, n), np.int64), np.empty((N, n), np.float32)
    for first in range(0, N, 1024):  # N x N cosines would not fit for many texts
        some = directions[first : first + 1024] @ directions.T
        rows = np.arange(len(some))
        some[rows, first + rows] = -np.inf  # itself
        best = np.argsort(-some, axis=1, kind="stable")[:, :n]
        places[first : first + 1024], cosines[first : first + 1024] = best, some[rows[:, None], best]
    return places, cosines
