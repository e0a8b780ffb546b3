"""What word2vec draws at random: which words of the text to read, and words to tell from the real ones.

    keep      P(keep w) = min(1, √(s / f_w) + s / f_w)       frequent words teach little; s = `sample`, f = frequency
    negatives q_w ∝ n_w^power                                between their frequency (1) and uniform (0)

(Mikolov et al. 2013)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.random import from_key
from chainrule.types import Array


def keep_probability(counts: Array, sample: float) -> Array:
    """counts (V,) -> probability (V,) that an occurrence is read; `sample` 0 reads everything."""
    frequency = counts / max(counts.sum(), 1)
    if sample == 0:
        return np.ones(len(counts))
    ratio = sample / np.maximum(frequency, np.finfo(float).tiny)
    return np.minimum(1.0, np.sqrt(ratio) + ratio)


def noise(counts: Array, power: float) -> Array:
    """counts (V,) -> the distribution (V,) of negatives; words that never occur are never drawn."""
    weight = np.where(counts > 0, counts.astype(float) ** power, 0.0)
    return weight / weight.sum()


class AliasTable(NamedTuple):
    """A distribution over 0 .. V-1 as V columns of equal width, each shared by at most two words (Walker 1974).

    A draw is one 32-bit number u: the high half of u · V is the column, the low half falls on one of its two words.
    """

    accept: npt.NDArray[np.uint32]  # below: the column's own word
    other: npt.NDArray[np.int32]  # otherwise: this one

    @classmethod
    def of(cls, probability: Array) -> AliasTable:
        """probability (V,) -> table; a word's frequency is right to one part in 2³² of the whole."""
        V = len(probability)
        height = probability * V
        accept, other = np.full(V, 2**32 - 1, np.uint32), np.arange(V, dtype=np.int32)
        low = [v for v in range(V) if height[v] < 1]
        high = [v for v in range(V) if height[v] >= 1]
        while low and high:  # fill up a column that is too low with a word that has too much
            small, large = low.pop(), high[-1]
            accept[small] = min(int(height[small] * 2**32), 2**32 - 1)
            other[small] = large
            height[large] -= 1 - height[small]
            if height[large] < 1:
                low.append(high.pop())
        return cls(accept, other)

    def draw(self, words: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
        """Random 32-bit words of any shape -> ids of the same shape"""
        product = words.astype(np.uint64) * np.uint64(len(self.accept))
        column = (product >> np.uint64(32)).astype(np.int32)
        own = (product & np.uint64(2**32 - 1)) < self.accept[column]
        return np.where(own, column, self.other[column])


def random_words(key: tuple[int, ...], first: int, count: int, negatives: int) -> npt.NDArray[np.uint32]:
    """The random words of the centers first .. first + count: (count, 1 + negatives). As in the kernel.

    A center needs one for its window and one for each negative; a block of Philox has eight.
    """
    blocks = (negatives + 8) // 8
    bits = from_key(key).bit_generator
    bits.advance(first * blocks)  # type: ignore[attr-defined]  # all of Philox's kind can
    raw = bits.random_raw(4 * count * blocks).astype("<u8", copy=False).view("<u4")  # low half first
    return raw.reshape(count, 8 * blocks)[:, : 1 + negatives]
