"""How time grows with the length of a text that is one long word."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable


def long_word(n: int) -> str:
    return "".join(random.Random(n).choices(string.ascii_lowercase, k=n))


def growth(work: Callable[[int], object], n: int) -> float:
    """Time for 4n over time for n: about 4 if it grows in proportion, 16 if with the square."""
    return _seconds(work, 4 * n) / _seconds(work, n)


def _seconds(work: Callable[[int], object], n: int) -> float:
    """The best of three: what else the machine does only adds."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        work(n)
        taken.append(time.process_time() - start)
    return min(taken)
