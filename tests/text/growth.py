"""How time grows with the length of a text that is one long word."""

from __future__ import annotations

import math
import random
import string
import time
from collections.abc import Callable


def long_word(n: int) -> str:
    return "".join(random.Random(n).choices(string.ascii_lowercase, k=n))


LINEAR = 1.5  # an exponent below: halfway between growing in proportion and with the square


def growth(work: Callable[[int], object], n: int) -> float:
    """The exponent e of time ~ lengthᵉ, between n and 16 n: about 1 if time grows in proportion, 2 if with the square.

    By the best times so far, since what else the machine does only adds; measured again while they look too long.
    """
    best = {n: math.inf, 16 * n: math.inf}
    for _ in range(8):
        best = {length: min(seconds, _seconds(work, length)) for length, seconds in best.items()}
        exponent = math.log(best[16 * n] / best[n], 16)
        if exponent < LINEAR:
            break
    return exponent


def _seconds(work: Callable[[int], object], n: int) -> float:
    start = time.process_time()
    work(n)
    return time.process_time() - start
