"""Rows of one or two texts as a BERT reads them: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from chainrule.data.batches.padded import Mask, pad
from chainrule.errors import ConfigError
from chainrule.text.special_tokens import SpecialIds
from chainrule.types import Ids


class Segmented(NamedTuple):
    """Rows of one or two texts."""

    ids: Ids  # (B, T)
    mask: Mask  # (B, T), True where a token is
    segments: Ids  # (B, T): 0 in [CLS] A [SEP], 1 in B [SEP]


def segmented(firsts: Sequence[Ids], seconds: Sequence[Ids | None], special: SpecialIds) -> Segmented:
    """B rows, [CLS] first [SEP] or [CLS] first [SEP] second [SEP], padded to the longest

    >>> import numpy as np
    >>> from chainrule.data import SpecialIds, segmented
    >>> rows = segmented([np.array([7, 8]), np.array([9])], [np.array([5]), None], SpecialIds(1, 2, 3))
    >>> rows.ids.tolist(), rows.segments.tolist()
    ([[1, 7, 8, 2, 5, 2], [1, 9, 2, 0, 0, 0]], [[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0]])
    """
    start, stop = np.array([special.cls]), np.array([special.sep])
    rows = [
        np.concatenate([start, first, stop] if second is None else [start, first, stop, second, stop])
        for first, second in zip(firsts, seconds, strict=True)
    ]
    ids, mask = pad(rows, value=special.pad)
    second_from = np.array([len(first) + 2 for first in firsts])[:, None]  # (B, 1)
    segments = mask & (np.arange(ids.shape[1]) >= second_from)
    return Segmented(ids, mask, segments.astype(np.int32))


def sequences(rows: Sequence[Sequence[Ids]], special: SpecialIds) -> Segmented:
    """B rows of any number of texts, [CLS] text [SEP] text [SEP] ..., padded to the longest; all are segment 0

    >>> import numpy as np
    >>> from chainrule.data import SpecialIds
    >>> from chainrule.data.batches.segmented import sequences
    >>> sequences([[np.array([7, 8]), np.array([5])], [np.array([9])]], SpecialIds(1, 2, 3)).ids.tolist()
    [[1, 7, 8, 2, 5, 2], [1, 9, 2, 0, 0, 0]]
    """
    start, stop = np.array([special.cls]), np.array([special.sep])
    joined = [np.concatenate([start, *(part for text in texts for part in (text, stop))]) for texts in rows]
    ids, mask = pad(joined, value=special.pad)
    return Segmented(ids, mask, np.zeros_like(ids))


def trim(first: Ids, second: Ids | None, limit: int) -> tuple[Ids, Ids | None]:
    """Truncate both to at most `limit` tokens together; the longer one is cut first."""
    if second is None:
        return first[:limit], None
    half = limit // 2
    kept = max(half, limit - len(second)) if len(first) > half else len(first)
    return first[:kept], second[: limit - kept]


def text_limit(block_size: int, texts: int) -> int:
    """The tokens of text that fit in a row of `block_size` with [CLS] and a [SEP] per text."""
    limit = block_size - 1 - texts
    if limit < texts:
        rule = f"must be at least {1 + 2 * texts}: [CLS], and per text a token and [SEP]"
        raise ConfigError.of("batches", {"block_size": block_size}, rule)
    return limit
