"""Texts as vectors of a fixed size, without learning: one-hot rows and counts.

padded one-hot     a row per position, up to a maximal length: V T numbers, so every position has weights of its own
bag of words       how often each token occurs: V numbers; the order is lost
bag of n-grams     how often each n-gram occurs: V^n numbers, nearly all 0
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError


def padded_one_hot(ids: npt.ArrayLike, vocab_size: int, length: int) -> npt.NDArray[np.float32]:
    """ids (n,) -> (length, V): a 1 in each row that has a token, zeros after the end"""
    tokens = _checked(ids, vocab_size)
    if len(tokens) > length:
        raise DataError(f"padded_one_hot: {len(tokens)} tokens, length {length} (must be at least as many)")
    rows = np.zeros((length, vocab_size), np.float32)
    rows[np.arange(len(tokens)), tokens] = 1
    return rows


def bag_of_words(ids: npt.ArrayLike, vocab_size: int) -> npt.NDArray[np.int64]:
    """ids (n,) -> counts (V,)"""
    return np.bincount(_checked(ids, vocab_size), minlength=vocab_size)


def bag_of_ngrams(ids: npt.ArrayLike, vocab_size: int, n: int) -> Counter[tuple[int, ...]]:
    """ids (t,) -> the count of each n-gram that occurs, out of V^n possible ones"""
    if n < 1:
        raise ConfigError(f"bag_of_ngrams: n is {n} (must be at least 1)")
    tokens = _checked(ids, vocab_size).tolist()
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _checked(ids: npt.ArrayLike, vocab_size: int) -> npt.NDArray[np.int64]:
    tokens = np.asarray(ids, np.int64)
    if tokens.ndim != 1 or ((tokens < 0) | (tokens >= vocab_size)).any():
        raise DataError(f"features: ids {tokens.shape} (must be (n,), each from 0 to {vocab_size - 1})")
    return tokens
