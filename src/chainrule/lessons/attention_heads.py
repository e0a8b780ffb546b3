"""Two heads that share the work: a GPT learns to name the first token and the one before it, in this order.

One head could look at both, but not tell which is which.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chainrule import random
from chainrule.models import GPT, GPTConfig
from chainrule.optim import AdamW

LETTERS = "abc"
LENGTH = 8


def texts(rows: int, step: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """ids (rows, LENGTH) of random letters"""
    return random.generator("two heads", step, seed=seed).integers(len(LETTERS), size=(rows, LENGTH))


def trained_gpt(steps: int = 150, seed: int = 0) -> GPT:
    """One layer of two heads; class 3 i + j stands for "the first token is i, the one before is j"."""
    with random.seeded(seed):
        config = GPTConfig(n_layer=1, n_head=2, n_embd=32, block_size=LENGTH, vocab_size=len(LETTERS) ** 2)
        model = GPT(config)
    optimizer = AdamW(model.parameters(), 1e-2)
    for step in range(steps):
        ids = texts(32, step, seed)
        optimizer.zero_grad()
        model.loss(ids, len(LETTERS) * ids[:, :1] + np.roll(ids, 1, axis=1)).backward()
        optimizer.step()
    return model.eval()
