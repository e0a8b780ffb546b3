"""Hashes of texts and of arrays of integers, the same in every process."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


def mix(x: npt.NDArray[Any]) -> Words:
    """x (...) -> hashes (...): each bit of the input changes half the bits of the output; one-to-one.

    The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    """
    x = x.astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def digest(text: str, salt: int = 0) -> bytes:
    """A hash of 16 bytes: two different texts have the same one with probability 2⁻¹²⁸."""
    content = text.encode("utf-8", "surrogatepass")  # JSON can hold half a surrogate pair
    return hashlib.blake2b(content, digest_size=16, salt=salt.to_bytes(8, "little")).digest()
