"""The ladder: every kind of language model on one text, from counting to attention, measured in bits per byte.

    unigram  bigram  n-gram           counted
    neural n-gram  MLP                a fixed window of tokens
    RNN  GRU  LSTM                    a state carried along
    GPT                               attention

The networks are matched: by parameters, each with about as many and the same number of updates; or by compute, each
with as many multiply-adds of training as the GPT, so that a cheaper model sees more text. All are judged on the same
windows of held-out text, and none sees beyond the beginning of a window. Networks are trained once per seed.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from chainrule.data import Corpus, windows
from chainrule.errors import ConfigError, DataError
from chainrule.models import KneserNey, LanguageModel, NGram, Terminals, make
from chainrule.models.window import contexts
from chainrule.random import seeded
from chainrule.text import Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.train.loop import Trainer
from chainrule.train.material import Text
from chainrule.train.sources import source

WINDOW = 64  # tokens that a model is trained and judged on at a time
MOST = 20  # times the updates of the GPT that a cheap model gets at equal compute


@dataclass(frozen=True)
class LadderConfig:
    """What the models of the ladder have in common."""

    match: Literal["parameters", "compute"] = "parameters"
    """What the networks have alike: parameters and updates, or multiply-adds of training."""
    params: int = 100_000
    """Parameters of each network, at most; the nearest its family allows."""
    steps: int = 2000
    """Updates of each network; at equal compute, of the GPT."""
    batch_size: int = 16
    """Windows of 64 tokens per update."""
    seeds: int = 3
    """Times each network is trained, from different first weights and on batches of another order."""
    order: int = 5
    """Of the longest counted n-gram."""

    def __post_init__(self) -> None:
        for name in ("params", "steps", "batch_size", "seeds"):
            if getattr(self, name) < 1:
                raise ConfigError(f"ladder: {name} is {getattr(self, name)} (must be at least 1)")
        if self.order < 3:
            raise ConfigError(
                f"ladder: order is {self.order} (must be at least 3: 1 and 2 are rungs already)"
            )


@dataclass(frozen=True)
class Family:
    """A rung that is trained: how it is made and which of its sizes gives way until the parameters fit."""

    title: str
    name: str
    grows: str
    step: int = 1
    fixed: dict[str, Any] = field(default_factory=dict)
    lr: float = 3e-3
    decay: float = 0.1


FAMILIES = (
    Family("neural n-gram", "ngram", "block_size", lr=3e-2, decay=0.0),
    Family("MLP", "mlp", "n_hidden", fixed={"block_size": 8, "n_embd": 24}),
    Family("RNN", "rnn", "n_hidden", fixed={"n_layer": 1, "n_embd": 48, "block_size": WINDOW}, lr=5e-3),
    Family("GRU", "gru", "n_hidden", fixed={"n_layer": 1, "n_embd": 48, "block_size": WINDOW}, lr=1e-2),
    Family("LSTM", "lstm", "n_hidden", fixed={"n_layer": 1, "n_embd": 48, "block_size": WINDOW}, lr=2e-2),
    Family("GPT", "gpt", "n_embd", step=4, fixed={"n_layer": 2, "n_head": 4, "block_size": WINDOW}, lr=1e-2),
)


@dataclass(frozen=True)
class Rung:
    """One line of the table: a kind of model and what it reached."""

    title: str
    parameters: int
    """Of a counted model: the counts it keeps."""
    updates: int
    seconds: float
    """Of training, for all seeds."""
    bits_per_byte: tuple[float, ...]
    """One for each seed."""

    @property
    def mean(self) -> float:
        return statistics.fmean(self.bits_per_byte)

    @property
    def interval(self) -> float | None:
        """Half the width of the 95 % interval of the mean (Student's t); None for a single value."""
        n = len(self.bits_per_byte)
        if n < 2:
            return None
        return STUDENT[min(n, len(STUDENT) + 1) - 2] * statistics.stdev(self.bits_per_byte) / math.sqrt(n)


# 97.5 % points of Student's t for 1, 2, ... degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)

Tell = Callable[[str, float], None]  # which model, and how far its training is, from 0 to 1


class Ladder:
    """The text, cut and judged alike for every rung.

    >>> import chainrule as cr
    >>> ladder = cr.train.Ladder(cr.data.load("pydoc"))
    >>> [round(rung.mean, 2) for rung in ladder.counted()]
    [4.76, 3.67, 2.11]
    """

    def __init__(
        self, corpus: Corpus, config: LadderConfig | None = None, tokenizer: Tokenizer | None = None
    ) -> None:
        self.config = config or LadderConfig()
        self.material = Text.of(corpus, tokenizer)
        self.tokenizer = self.material.tokenizer
        self.training, validation = self.material.training, self.material.validation
        if len(validation) <= WINDOW or len(self.training) <= self.config.batch_size * WINDOW:
            raise DataError(
                f"ladder: {len(self.training)} tokens to train on and {len(validation)} to judge by (must be more "
                f"than {self.config.batch_size * WINDOW} and {WINDOW}: bring a longer text)"
            )
        self.exam = list(windows(validation, batch_size=64, block_size=WINDOW, limit=1000))

    def climb(self, tell: Tell = lambda title, share: None) -> Iterator[Rung]:
        """Every rung, from the lowest."""
        yield from self.counted()
        for family in FAMILIES:
            yield self.trained(family, tell)

    def counted(self) -> Iterator[Rung]:
        """The models that only count, with Kneser-Ney smoothing."""
        ends = Terminals(self.tokenizer.vocab_size, None)  # one text without documents
        for order in (1, 2, self.config.order):
            began = time.perf_counter()
            model = NGram.fit(
                [self.training],
                order=order,
                vocab_size=self.tokenizer.vocab_size,
                ends=ends,
                smoothing=KneserNey(),
            )
            seconds = time.perf_counter() - began
            title = {1: "unigram", 2: "bigram"}.get(order, f"{order}-gram")
            kept = sum(len(level.grams) for level in model.levels)
            yield Rung(title, kept, 0, seconds, (self.bits(self.surprise(model)),))

    def surprise(self, model: NGram) -> float:
        """Nats per token of the exam; as for the networks, nothing is known before the beginning of a window."""
        nothing, total, count = self.tokenizer.vocab_size, 0.0, 0
        for inputs, targets in self.exam:
            seen = contexts(inputs, model.order - 1, nothing).reshape(targets.size, -1)  # (B T, n - 1)
            total -= float(np.log(model.probability(seen, targets.ravel())).sum())
            count += targets.size
        return total / count

    def trained(self, family: Family, tell: Tell = lambda title, share: None) -> Rung:
        """A network, once per seed."""
        losses, began = [], time.perf_counter()
        for seed in range(self.config.seeds):
            with seeded(seed):
                model = self.fitting(family)
            updates = self.updates(model)
            trainer = Trainer(
                model,
                source(model, self.training, batch_size=self.config.batch_size, block_size=WINDOW, seed=seed),
                self.exam,
                TrainConfig(
                    max_steps=updates,
                    lr=family.lr,
                    weight_decay=family.decay,
                    seed=seed,
                    eval_every=updates,
                    save_every=updates,
                ),
            )
            result = trainer.run(_Progress(family.title, seed, self.config.seeds, updates, tell))
            if result.interrupted:
                raise KeyboardInterrupt
            losses.append(self.bits(result.validation))
        return Rung(family.title, model.count(), updates, time.perf_counter() - began, tuple(losses))

    def fitting(self, family: Family) -> LanguageModel:
        """The largest model of a family within the parameters; the smallest there is if none is."""

        def sized(n: int) -> LanguageModel:
            sizes = family.fixed | {family.grows: n * family.step, "vocab_size": self.tokenizer.vocab_size}
            return make(family.name, **sizes)

        n = 1
        while sized(2 * n).count() <= self.config.params:
            n *= 2
        for bit in (1 << k for k in reversed(range(n.bit_length() - 1))):
            n += bit if sized(n + bit).count() <= self.config.params else 0
        return sized(n)

    def updates(self, model: LanguageModel) -> int:
        """How many updates a model gets."""
        steps = self.config.steps
        if self.config.match == "parameters":
            return steps
        gpt = self.fitting(FAMILIES[-1])
        return max(1, min(MOST * steps, round(steps * multiply_adds(gpt) / multiply_adds(model))))

    def bits(self, nats: float) -> float:
        """nats per token -> bits per byte"""
        return self.material.bits_per_byte(nats)


def multiply_adds(model: LanguageModel) -> float:
    """Of the forward pass, per token: one for each weight of a product, and those between positions.

    A table of embeddings that is only looked up costs nothing; GPT's is also its last product.
    """
    config = model.config
    if hasattr(config, "n_head"):  # half of all pairs of positions: queries with keys, weights with values
        return (
            model.count()
            - config.block_size * config.n_embd
            + config.n_layer * config.block_size * config.n_embd
        )
    if hasattr(config, "n_embd"):
        return model.count() - config.vocab_size * config.n_embd
    return config.block_size * config.vocab_size


@dataclass
class _Progress:
    """What the trainer tells, as a share of all the training of a rung."""

    title: str
    seed: int
    seeds: int
    updates: int
    tell: Tell

    def step(self, step: int, *_: Any, **__: Any) -> None:
        self.tell(self.title, (self.seed + step / self.updates) / self.seeds)

    def evaluation(self, *_: Any, **__: Any) -> None:
        pass

    def note(self, step: int, record: dict[str, Any], *said: str) -> None:
        pass


def table(rungs: Sequence[Rung]) -> str:
    """A Markdown table of the rungs."""
    lines = [
        "| model | parameters | updates | bits per byte | 95 % interval | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for rung in rungs:
        interval = "–" if rung.interval is None else f"± {rung.interval:.3f}"
        lines.append(
            f"| {rung.title} | {rung.parameters:,} | {rung.updates:,} | {rung.mean:.3f} | {interval} "
            f"| {rung.seconds:.1f} |"
        )
    return "\n".join(lines) + "\n"
