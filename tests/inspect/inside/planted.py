"""A model whose circuit is known, and a text with a repetition: START a b c d e f, then the same letters once more."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.lessons.networks.induction import START, induction_gpt

LETTERS = np.array([5, 6, 3, 7, 4, 9])
IDS = np.concatenate([[START], LETTERS, LETTERS])
SECOND = range(len(LETTERS) + 1, 2 * len(LETTERS))  # positions whose next token can be copied
INDUCTION, PREVIOUS = ("h.1", 1), ("h.0", 0)


def planted() -> Any:
    return induction_gpt()
