"""Training of byte-level BPE in C++ on words that were split by other means than its scanners.

With no letter, number or space in its table, the scanner of GPT-2 takes any text as one word, unless it begins with a
contraction such as 's. So the apostrophe changes places with the byte 0xFF, which UTF-8 never contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.text.unicode.byte_alphabet import BYTES_IN_ORDER
from chainrule.text.unicode.utf8 import joined

_SWAPPED = bytes.maketrans(b"'\xff", b"\xff'")


class WholeWordTrainer:
    """Counts words of valid UTF-8, then learns merges."""

    def __init__(self) -> None:
        self._trainer = native.kernels().BpeTrainer(_no_classes(), 0)

    def add(self, words: Sequence[bytes]) -> None:
        """Count words."""
        data, ends = joined(words)
        self._trainer.add(data.translate(_SWAPPED), ends)

    def train(self, limit: int, least: int) -> npt.NDArray[np.int32]:
        """(m, 4): left, right, merged, priority; at most `limit` merges of pairs that occur `least` times."""
        rows: npt.NDArray[np.int32] = self._trainer.train(BYTES_IN_ORDER.translate(_SWAPPED), limit, least)
        return rows


@cache
def _no_classes() -> Any:
    return native.kernels().character_classes(np.empty((0, 3), np.int32))
