"""Defaults that people rely on without naming them: each is that of the paper or program that made it usual.

A changed default trains another model from the same command; so a change is made here too, on purpose.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import chainrule as cr
from chainrule.doctor import limits
from chainrule.train.config import TrainConfig, WordTrainConfig
from chainrule.train.word_vectors import trainer as word_vectors


def default_of(function: Any, name: str) -> Any:
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize(
    ("found", "expected", "source"),
    [
        (WordTrainConfig().power, 0.75, "Mikolov et al. 2013"),
        (default_of(cr.nn.RMSNorm, "eps"), 1e-6, "Zhang and Sennrich 2019, as in Llama"),
        (default_of(cr.nn.LayerNorm, "eps"), 1e-5, "PyTorch"),
        (cr.models.GPTConfig(vocab_size=2).norm_eps, 1e-5, "GPT-2"),
        (default_of(cr.optim.Lion, "betas"), (0.9, 0.99), "Chen et al. 2023"),
        (default_of(cr.optim.Adam, "betas"), (0.9, 0.999), "Kingma and Ba 2015"),
        (default_of(cr.optim.Adam, "eps"), 1e-8, "Kingma and Ba 2015"),
        (TrainConfig().beta2, 0.99, "nanoGPT's small models"),
        (TrainConfig().clip, 1.0, "GPT-3"),
        (TrainConfig().weight_decay, 0.1, "GPT-3"),
        (limits.OVERFITTED, 0.1, "docs/guide/doctor.md"),
    ],
)
def test_a_default_is_the_usual_one(found: Any, expected: Any, source: str) -> None:
    assert found == expected, source


def test_the_bits_of_word_vectors_depend_on_how_the_text_is_cut() -> None:
    """Another number trains other vectors from the same command."""
    assert (word_vectors.PASSAGE, word_vectors.COUNT, word_vectors.LANES) == (1 << 14, 32, 8)


def test_the_trainer_uses_the_first_beta_of_adam() -> None:
    """TrainConfig has no beta1: it is Adam's 0.9."""
    model = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=1, n_embd=8, block_size=4, vocab_size=5))
    batches = cr.data.Batches(cr.text.CharTokenizer("abcde").encode("abcde" * 9), batch_size=2, block_size=4)
    optimizer = cr.train.Trainer(model, batches, [], TrainConfig()).gradient.optimizer
    assert optimizer.betas == (0.9, 0.99)
