"""Near-duplicates, found without comparing every text with every other.

The similarity of two texts is the Jaccard index of their shingles, the sets of all their substrings of 12 bytes. A
signature of 96 numbers stands for the set: the fraction of equal numbers in two signatures estimates the similarity,
with a standard error of at most about 0.05. Shingles are hashed once; the hashes fall into 96 bins, each of which keeps
its smallest; an empty bin borrows from the next (one-permutation hashing with rotation, Shrivastava and Li 2014).

To find candidates, a signature is cut into 16 bands of 6 numbers, and texts with an equal band are compared. Two texts
of similarity s share a band with probability 1 - (1 - s⁶)¹⁶: 0.99 for s = 0.8, 0.22 for s = 0.5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chainrule.data.hashing import Words, mix

SHINGLE = 12  # bytes, about two words
BANDS, ROWS = 16, 6
BINS = BANDS * ROWS

Signature = npt.NDArray[np.uint32]

_EDGES = np.array([-(-(i << 64) // BINS) for i in range(BINS)], np.uint64)  # the lowest hash of each bin
_ODD = 0x9E3779B97F4A7C15  # a hash of n bytes is their polynomial in this number, modulo 2⁶⁴


def signature(text: str) -> Signature:
    """text -> (96,). Case and the amount of white space do not matter."""
    hashes = np.sort(mix(_shingles(" ".join(text.lower().split()))))
    first = np.searchsorted(hashes, _EDGES)  # (bins,): the first hash in this bin or after it
    last = np.searchsorted(hashes, _EDGES[1:])
    filled = first < np.append(last, len(hashes))
    places = np.flatnonzero(filled)
    source = places[np.searchsorted(places, np.arange(BINS)) % len(places)]  # the next bin that is not empty
    distance = (source - np.arange(BINS)) % BINS
    return (hashes[first[source]] + distance.astype(np.uint64)).astype(np.uint32)


def similarity(a: Signature, b: Signature) -> npt.NDArray[np.float64]:
    """(..., 96), (..., 96) -> estimated Jaccard index (...)"""
    return np.asarray((a == b).mean(-1))


class Index:
    """Texts by the bands of their signatures."""

    def __init__(self) -> None:
        self.signatures: list[Signature] = []
        self.places: dict[bytes, list[int]] = {}

    def add(self, new: Signature) -> None:
        for band in _bands(new):
            self.places.setdefault(band, []).append(len(self.signatures))
        self.signatures.append(new)

    def nearest(self, wanted: Signature) -> tuple[int, float]:
        """(index, similarity) of the most similar text that shares a band; (-1, 0.0) if none does"""
        found = sorted({place for band in _bands(wanted) for place in self.places.get(band, ())})
        if not found:
            return -1, 0.0
        alike = similarity(np.stack([self.signatures[place] for place in found]), wanted)
        best = int(alike.argmax())
        return found[best], float(alike[best])


def _bands(of: Signature) -> list[bytes]:
    """The bands as keys, each with its number."""
    content, size = of.tobytes(), ROWS * of.itemsize
    return [bytes([i]) + content[i * size : (i + 1) * size] for i in range(BANDS)]


def _shingles(text: str) -> Words:
    """Hashes of all substrings of 12 bytes (n - 11,), built from those of 1, 2, 4, 8 bytes, then 8 + 4."""
    content = text.encode("utf-8", "surrogatepass").ljust(SHINGLE, b"\0")
    one = np.frombuffer(content, np.uint8).astype(np.uint64)
    four = _joined(_joined(one, one, 1), _joined(one, one, 1), 2)
    return _joined(_joined(four, four, 4), four, 8)


def _joined(left: Words, right: Words, length: int) -> Words:
    """Hashes of substrings, from those of their first `length` bytes and of the rest."""
    power = np.uint64(pow(_ODD, length, 1 << 64))
    following = right[length:]
    return left[: len(following)] * power + following
