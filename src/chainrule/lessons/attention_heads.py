"""Heads of attention: random ones, and two that share the work of a trained GPT.

The GPT learns to name the first token and the one before it, in this order: one head could look at both, but not tell
which is which.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chainrule import random
from chainrule.autograd.types import Array
from chainrule.foundations.attention import self_attend
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


def random_heads(T: int) -> list[tuple[str, Array]]:
    """Names and maps (T, T) of three heads that see the same words through their own matrices; the last is causal."""
    rng = random.generator("attention maps", seed=0)
    X = rng.normal(size=(T, 16))
    found = []
    for h in range(3):
        W = rng.normal(0, 0.35, size=(3, 16, 8))
        kind = "causal" if h > 1 else "sees all"
        found.append((f"head {h + 1}: {kind}", self_attend(X, *W, causal=h > 1).weights))
    return found
