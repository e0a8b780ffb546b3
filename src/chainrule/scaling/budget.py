"""A language model for a time budget: measure this machine, choose the sizes, say what to expect.

A larger model learns more from a token, a smaller one sees more of them in the same time. Both limits are met about
where a model sees TOKENS_PER_PARAMETER tokens for each of its parameters. So the sizes of LADDER are
timed from the smallest on, and the largest is taken that still sees as many. The loss to expect is that of `outlook`, a
law over measured runs, from what counting reaches on the same text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from chainrule import random
from chainrule.data import Batches, Corpus, split
from chainrule.errors import ConfigError
from chainrule.machine import one_blas_thread
from chainrule.models import Model, make
from chainrule.scaling.ladder import Ladder
from chainrule.scaling.laws.joint import FLOPS
from chainrule.scaling.outlook import outlook
from chainrule.scaling.rungs import LadderConfig
from chainrule.text import BPETokenizer, CharTokenizer, Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.train.trainer import Trainer
from chainrule.types import Ids

TOKENS_PER_PARAMETER = 20.0
NOTHING: Mapping[str, Any] = MappingProxyType({})
Pace = Callable[[Trainer, float], float]


class Rung(NamedTuple):
    """Sizes of a model, and how it is trained."""

    n_layer: int
    n_head: int
    n_embd: int
    block_size: int
    batch_size: int
    lr: float


LADDER = [
    Rung(2, 2, 48, 64, 16, 6e-3),
    Rung(3, 3, 96, 64, 16, 5e-3),
    Rung(4, 4, 128, 96, 16, 4e-3),
    Rung(4, 6, 192, 128, 16, 3e-3),
    Rung(6, 8, 256, 128, 24, 2e-3),
    Rung(6, 6, 384, 256, 24, 1.5e-3),
    Rung(8, 8, 512, 256, 32, 1e-3),
    Rung(12, 12, 768, 512, 32, 6e-4),
]
CLIP = 5.0  # above the norm of most gradients of models this small
EVALUATIONS, FEWEST = 8, 50  # of a training, and steps between two of them at least
QUICK = 0.25  # seconds that timing a size may take in any case: on a busy machine a few steps tell little
RATE = 1e-6  # of the steps that are timed: the compiled step is used once weights have changed
TIMING = 0.03  # fraction of the budget that may go into timing
EPOCHS = 6  # over a text after which dropout is worth its price
REPEATED = 40  # epochs after which a text has hardly anything left to teach (Muennighoff et al. 2023)
UNKNOWN = (
    "the lines of the text are sorted: the tenth that is held back is another part of the alphabet, and what will be "
    "reached on it cannot be foretold (shuffle the lines)"
)
FAR_RATE = (
    "lr {given:g} is far from the {usual:g} that suits these sizes: what will be reached with it cannot be foretold "
    "(leave it out)"
)
FAR = 3  # times a learning rate, or a third of it
COUNTED = 20_000_000  # characters that are counted, at most
PACE = 1.25  # times faster or slower than it was while it was timed a machine may turn out to be
IN_ORDER = 0.9  # of the lines of a text that come in alphabetical order: a list that was sorted


@dataclass(frozen=True)
class Choice:
    """Sizes and settings for a budget, and what is expected of them."""

    tokenizer: Tokenizer
    sizes: dict[str, Any]
    training: dict[str, Any]  # fields of `TrainConfig`
    parameters: int
    steps: int
    epochs: float
    expected: (
        tuple[float, float] | None
    )  # bits per byte of the validation text, from and to, if that can be known
    seconds: float  # the budget
    unknown: str = UNKNOWN  # why nothing is expected, if so

    @property
    def remark(self) -> str:
        """What stands against the budget: a text so small that most of the time would only repeat it; else nothing."""
        if self.expected is None:
            return self.unknown
        if self.epochs <= REPEATED:
            return ""
        enough = max(1, round(self.seconds * REPEATED / self.epochs))
        budget = f"{enough}s" if enough < 120 else f"{enough // 60}m"
        said = f"the text is small for this budget: read more than {REPEATED} times, it teaches hardly anything new"
        return f"{said} (more text, or a budget of about {budget}; patience 3 stops in time)"

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {value}" for name, value in self.sizes.items())
        said = (
            "" if self.expected is None else "; expect {:.2f} to {:.2f} bits per byte".format(*self.expected)
        )
        return (
            f"{self.parameters:,} parameters ({sizes}), {self.tokenizer.vocab_size:,} tokens, lr "
            f"{self.training['lr']:g}; about {self.steps:,} steps of {self.training['batch_size']} windows "
            f"({self.epochs:.1f} times the text){said}"
        )


def choose(
    corpus: Corpus,
    seconds: float,
    family: str = "gpt",
    seed: int = 0,
    sizes: Mapping[str, Any] = NOTHING,
    training: Mapping[str, Any] = NOTHING,
    pace: Pace | None = None,
) -> Choice:
    """The best sizes for training `seconds` seconds on a text, by measurements on this machine.

    Fields of the model's config in `sizes`, such as dropout, and of the settings in `training` are as they are given.
    `pace` stands for another machine: seconds of a step of a trainer, measured within a limit.
    """
    tokenizer = suitable_tokenizer(corpus.text, seconds)
    parts = [tokenizer.encode(part) for part in split(corpus.text)]
    best: Tried | None = None
    for rung in LADDER:
        if min(map(len, parts)) <= 2 * rung.block_size:
            break
        shape = {name: getattr(rung, name) for name in ("n_layer", "n_head", "n_embd", "block_size")}
        settings = {"batch_size": rung.batch_size, "lr": rung.lr, "clip": CLIP}
        with random.seeded(seed):
            model = make(family, **shape | dict(sizes), vocab_size=tokenizer.vocab_size)
        config = TrainConfig(**settings | dict(training) | {"seed": seed})
        steps = fitting_steps(model, config, parts, seconds, pace or seconds_per_step)
        tried = Tried(shape | dict(sizes), settings | dict(training), model.count(), steps, rung.lr)
        enough = tried.tokens >= TOKENS_PER_PARAMETER * tried.parameters
        if best is None or enough:
            best = tried
        if not enough:
            break
    if best is None:
        raise ConfigError(f"budget: {corpus.name} has {len(parts[0])} tokens (must have some hundred)")
    epochs = best.tokens / len(parts[0])
    if family == "gpt" and epochs > EPOCHS:
        best.sizes.setdefault("dropout", 0.1)
    often = {"eval_every": max(FEWEST, best.steps // EVALUATIONS), "save_every": max(FEWEST, best.steps // 4)}
    settings = often | {"warmup": min(TrainConfig.warmup, best.steps // 10)} | best.training
    forecast, unknown, lr = expected(corpus, FLOPS * best.parameters * best.tokens), UNKNOWN, settings["lr"]
    if not best.lr / FAR <= lr <= best.lr * FAR:
        forecast, unknown = None, FAR_RATE.format(given=lr, usual=best.lr)
    return Choice(
        tokenizer, best.sizes, settings, best.parameters, best.steps, epochs, forecast, seconds, unknown
    )


class Tried(NamedTuple):
    """A size of the ladder, and how far it comes in the time."""

    sizes: dict[str, Any]
    training: dict[str, Any]
    parameters: int
    steps: int
    lr: float  # that suits the size

    @property
    def tokens(self) -> int:
        return int(self.steps * self.training["batch_size"] * self.sizes["block_size"])


def fitting_steps(
    model: Model, config: TrainConfig, parts: Sequence[Ids], seconds: float, measure: Pace
) -> int:
    """How many steps, with the evaluations between them, fit into the time; measured."""
    T = model.config.block_size
    batches = Batches(parts[0], batch_size=config.batch_size, block_size=T, seed=config.seed)
    pace = measure(Trainer(model, batches, [], config), TIMING * seconds / len(LADDER))
    evaluated = min(config.eval_windows, len(parts[1]) // T) / config.batch_size  # batches of an evaluation
    often = max(seconds / pace / EVALUATIONS, FEWEST)  # steps between two evaluations
    return max(
        1, round(seconds / pace / (1 + evaluated / 3 / often))
    )  # a third of a step is its forward pass


def suitable_tokenizer(text: str, seconds: float) -> Tokenizer:
    """Characters for a small text or a short time; else byte pairs, more of them for a longer text."""
    if len(text) < 1_000_000 or seconds < 60:
        return CharTokenizer.train(text)
    size = 512 if len(text) < 10_000_000 else 2048 if len(text) < 100_000_000 else 8192
    return BPETokenizer.train(split(text)[0], size)


def seconds_per_step(trainer: Trainer, limit: float) -> float:
    """The time of a step, of those after the first that the limit, or a quarter of a second, allows; two at least.

    A quarter of them is faster: the second and third step, which record and compare the compiled one, take longer.
    """
    times: list[float] = []
    began = time.perf_counter()
    with one_blas_thread():
        trainer.update(RATE)
        while len(times) < 2 or (len(times) < 25 and time.perf_counter() - began < max(limit, QUICK)):
            start = time.perf_counter()
            trainer.update(RATE)
            times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 4]


def expected(corpus: Corpus, compute: float) -> tuple[float, float] | None:
    """Bits per byte to expect of a GPT trained with `compute` multiply-adds and additions, from and to.

    None for a sorted list: the part that is held back is another part of the alphabet, and what counting reaches there
    says nothing about a network that sees the order.
    """
    if is_sorted(corpus.text):
        return None
    return outlook().range(counted(corpus), compute, PACE)


def counted(corpus: Corpus) -> tuple[float, float, float]:
    """Bits per byte that counts of single characters, of pairs and of five in a row reach on the validation text."""
    some = Corpus(corpus.name, corpus.version, corpus.text[:COUNTED])
    single, pair, longest = (rung.mean for rung in Ladder(some, LadderConfig(batch_size=1)).counted())
    return single, pair, longest


def is_sorted(text: str) -> bool:
    """Whether the lines of the validation text are in alphabetical order, nearly all of them."""
    lines = split(text)[1].splitlines()
    pairs = list(pairwise(lines))
    return len(pairs) > 20 and sum(a <= b for a, b in pairs) > IN_ORDER * len(pairs)
