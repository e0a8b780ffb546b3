"""A language model for a time budget: measure this machine, choose the sizes, say what to expect.

A larger model learns more from a token, a smaller one sees more of them in the same time. Both limits are met about
where a model sees TOKENS_PER_PARAMETER tokens for each of its parameters. So the sizes of LADDER are
timed from the smallest on, and the largest is taken that still sees as many. The loss to expect is estimated from what
counting reaches on the same text, which takes a second.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from chainrule import random
from chainrule.data import Batches, Corpus, split
from chainrule.errors import ConfigError
from chainrule.machine import one_blas_thread
from chainrule.models import make
from chainrule.scaling.ladder import Ladder
from chainrule.scaling.rungs import LadderConfig
from chainrule.text import BPETokenizer, CharTokenizer, Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.train.trainer import Trainer

TOKENS_PER_PARAMETER = 20.0
LADDER = [  # layers, heads, width, context, windows per batch, highest rate
    (2, 2, 48, 64, 16, 6e-3),
    (3, 3, 96, 64, 16, 5e-3),
    (4, 4, 128, 96, 16, 4e-3),
    (4, 6, 192, 128, 16, 3e-3),
    (6, 8, 256, 128, 24, 2e-3),
    (6, 6, 384, 256, 24, 1.5e-3),
    (8, 8, 512, 256, 32, 1e-3),
    (12, 12, 768, 512, 32, 6e-4),
]
TIMING = 0.03  # fraction of the budget that may go into timing
EPOCHS = 6  # over a text after which dropout is worth its price
COUNTED = 20_000_000  # characters that are counted, at most
# A GPT's bits in relation to those of five-grams: at 10¹³ operations, less per factor ten, and give or take.
RATIO, FALL, SPREAD = 1.0, 0.15, 0.1


@dataclass(frozen=True)
class Choice:
    """Sizes and settings for a budget, and what is expected of them."""

    tokenizer: Tokenizer
    sizes: dict[str, Any]
    training: dict[str, Any]  # fields of `TrainConfig`
    parameters: int
    steps: int
    epochs: float
    expected: tuple[float, float]  # bits per byte of the validation text, from and to

    def __str__(self) -> str:
        low, high = self.expected
        return (
            f"{self.parameters:,} parameters, about {self.steps:,} steps of {self.training['batch_size']} windows "
            f"({self.epochs:.1f} times the text), {self.tokenizer.vocab_size:,} tokens; "
            f"expect {low:.2f} to {high:.2f} bits per byte"
        )


def choose(corpus: Corpus, seconds: float, family: str = "gpt", seed: int = 0) -> Choice:
    """The best sizes for training `seconds` seconds on a text, by measurements on this machine."""
    tokenizer = suitable_tokenizer(corpus.text, seconds)
    training, validation = (tokenizer.encode(part) for part in split(corpus.text))
    best = None
    for layers, heads, width, context, rows, lr in LADDER:
        if len(training) <= 2 * context or len(validation) <= 2 * context:
            break
        sizes: dict[str, Any] = {"n_layer": layers, "n_head": heads, "n_embd": width, "block_size": context}
        with random.seeded(seed):
            model = make(family, **sizes, vocab_size=tokenizer.vocab_size)
        batches = Batches(training, batch_size=rows, block_size=context, seed=seed)
        settings: dict[str, Any] = {"batch_size": rows, "lr": lr}
        trainer = Trainer(model, batches, [], TrainConfig(**settings, seed=seed))
        steps = seconds / seconds_per_step(trainer, TIMING * seconds / 8)
        tokens = steps * rows * context
        enough = tokens >= TOKENS_PER_PARAMETER * model.count()
        if enough or best is None:
            best = (sizes, settings, model.count(), steps, tokens)
        if not enough:
            break
    if best is None:
        raise ConfigError(f"budget: {corpus.name} has {len(training)} tokens (must have some hundred)")
    sizes, settings, parameters, steps, tokens = best
    epochs = tokens / len(training)
    if family == "gpt" and epochs > EPOCHS:
        sizes["dropout"] = 0.1
    settings |= {"eval_every": max(50, round(steps / 8)), "save_every": max(50, round(steps / 4))}
    settings["warmup"] = min(TrainConfig.warmup, round(steps) // 10)
    outlook = expected(corpus, 6 * parameters * tokens)
    return Choice(tokenizer, sizes, settings, parameters, round(steps), epochs, outlook)


def suitable_tokenizer(text: str, seconds: float) -> Tokenizer:
    """Characters for a small text or a short time; else byte pairs, more of them for a longer text."""
    if len(text) < 1_000_000 or seconds < 60:
        return CharTokenizer.train(text)
    size = 512 if len(text) < 10_000_000 else 2048 if len(text) < 100_000_000 else 8192
    return BPETokenizer.train(split(text)[0], size)


def seconds_per_step(trainer: Trainer, limit: float) -> float:
    """The median time of a few steps after the first; at least two are made, more while the limit allows."""
    times: list[float] = []
    began = time.perf_counter()
    with one_blas_thread():
        trainer.update(0.0)
        while len(times) < 2 or (len(times) < 7 and time.perf_counter() - began < limit):
            start = time.perf_counter()
            trainer.update(0.0)
            times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def expected(corpus: Corpus, compute: float) -> tuple[float, float]:
    """Bits per byte to expect of a GPT trained with `compute` multiply-adds and additions, from and to.

    A table of five-grams says how hard the text is. What a GPT reaches in relation falls with the logarithm of its
    compute: a rough rule, checked on the three runs that docs/guide/training.md names.
    """
    some = Corpus(corpus.name, corpus.version, corpus.text[:COUNTED])
    *_, longest = Ladder(some, LadderConfig(batch_size=1)).counted()
    ratio = RATIO - FALL * math.log(compute / 1e13, 10)
    return longest.mean * (ratio - SPREAD), longest.mean * (ratio + SPREAD)
