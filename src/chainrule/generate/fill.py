"""Words for the gaps of a text, guessed by a BERT from all that stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.data import SpecialIds, segmented
from chainrule.data.batches.segmented import text_limit
from chainrule.errors import ConfigError, DataError
from chainrule.models import BERTPretraining
from chainrule.models.bert.body import rows_at
from chainrule.text import Tokenizer
from chainrule.types import Ids

MASK, ROBERTA_MASK = "[MASK]", "<mask>"  # in a prompt either may stand, whatever the tokenizer calls it


class Guess(NamedTuple):
    """A token that may stand in a gap, as it is shown, and how probable it is."""

    id: int
    token: str
    probability: float


class Filled(NamedTuple):
    """A text with the likeliest token in each gap, and for each gap the likeliest ones."""

    text: str
    gaps: list[list[Guess]]


def fill_masks(
    model: BERTPretraining, tokenizer: Tokenizer, texts: Sequence[str], k: int = 5
) -> list[Filled]:
    """For each [MASK] in the texts the k likeliest tokens, the likeliest first; the texts are read together

    Each gap is guessed with the others open: the words of one text need not fit each other.

    >>> import chainrule as cr
    >>> tokenizer = cr.text.WordPieceTokenizer.train("the cat sat on the mat", 40)
    >>> model = cr.models.make("bert", n_layer=1, n_head=2, n_embd=16, vocab_size=tokenizer.vocab_size)
    >>> (filled,) = cr.generate.fill_masks(model, tokenizer, ["the [MASK] sat on the [MASK]"], k=3)
    >>> [len(guesses) for guesses in filled.gaps]
    [3, 3]
    """
    if not 1 <= k <= tokenizer.vocab_size:
        raise ConfigError(f"fill: k is {k} (must be from 1 to the {tokenizer.vocab_size} tokens there are)")
    special = SpecialIds.of(tokenizer.special_ids)
    limit = text_limit(model.config.block_size, 1)
    rows = [_with_gaps(tokenizer, text, special.mask, limit) for text in texts]
    if not rows:
        return []
    batch = segmented(rows, [None] * len(rows), special)
    with model.answering():
        hidden = rows_at(model.bert(*batch), np.flatnonzero(batch.ids == special.mask))  # (gaps, C)
        probabilities = ops.softmax(model.words(hidden)).numpy()  # (gaps, V)
    of_each = np.split(probabilities, np.cumsum([np.count_nonzero(ids == special.mask) for ids in rows])[:-1])
    return [_filled(tokenizer, *each, special.mask, k) for each in zip(rows, of_each, strict=True)]


def _with_gaps(tokenizer: Tokenizer, text: str, mask: int, limit: int) -> Ids:
    """The ids of a text (n,) with `mask` where [MASK] stands: a tokenizer itself makes no special tokens of text"""
    first, *others = text.replace(ROBERTA_MASK, MASK).split(MASK)
    if not others:
        raise DataError(f"fill: {text[:60]!r} has no {MASK} (must have one where a word is to be guessed)")
    if ROBERTA_MASK in tokenizer.special_ids:  # it stands for the space before it too
        first, *others = [part.rstrip() for part in (first, *others[:-1])] + others[-1:]
    parts = [tokenizer.encode(first)]
    for other in others:
        parts += [np.array([mask]), tokenizer.encode_inside(other)]
    ids = np.concatenate(parts)
    if len(ids) > limit:
        raise DataError(f"fill: {text[:60]!r} has {len(ids)} tokens (must be at most {limit}: shorten it)")
    return ids


def _filled(tokenizer: Tokenizer, ids: Ids, probabilities: npt.NDArray[Any], mask: int, k: int) -> Filled:
    """ids (n,), probabilities (gaps, V) of the tokens in each gap"""
    best = np.argsort(-probabilities, axis=-1, kind="stable")[:, :k]  # (gaps, k)
    gaps = [
        [Guess(id, tokenizer.piece(id), float(p[id])) for id in row.tolist()]
        for row, p in zip(best, probabilities, strict=True)
    ]
    whole = ids.copy()
    whole[ids == mask] = best[:, 0]
    return Filled(tokenizer.decode(whole), gaps)
