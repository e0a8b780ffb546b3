"""The ladder: every kind of language model on one text, from counting to attention, measured in bits per byte.

    unigram  bigram  n-gram           counted
    neural n-gram  MLP                a fixed window of tokens
    RNN  GRU  LSTM                    a state carried along
    GPT                               attention

The networks are matched: by parameters, each with about as many and the same number of updates; or by compute, each
with as many multiply-adds of training as the GPT, so that a cheaper model sees more text. All are evaluated on the same
windows of held-out text, and none sees beyond the beginning of a window. Networks are trained once per seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from chainrule.data import Corpus, windows
from chainrule.distributed import alone, each
from chainrule.errors import ConfigError, DataError
from chainrule.models import KneserNey, LanguageModel, NGram, Terminals
from chainrule.models.window.model import contexts
from chainrule.random import seeded
from chainrule.scaling.ladder_networks import FAMILIES, WINDOW, Family, multiply_adds
from chainrule.scaling.rungs import LadderConfig, Rung
from chainrule.tasks.language_modeling import LanguageModelingTask, text_batches
from chainrule.text import Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.train.log import Logger
from chainrule.train.trainer import Trainer

MOST = 20  # times the updates of the GPT that a cheap model gets at equal compute
Tell = Callable[[str, float], None]  # which model, and how far its training is, from 0 to 1


def _silent(title: str, fraction: float) -> None:
    """Tell nothing."""


class Trained(NamedTuple):
    """A network that was trained with one seed."""

    parameters: int
    updates: int
    seconds: float
    bits_per_byte: float


class Ladder:
    """The text, split and evaluated alike for every rung.

    >>> import chainrule as cr
    >>> ladder = cr.scaling.ladder.Ladder(cr.data.load("pydoc"))
    >>> bits = [rung.mean for rung in ladder.counted()]  # per byte: letters alone, pairs, five in a row
    >>> bits == sorted(bits, reverse=True)
    True
    """

    def __init__(
        self, corpus: Corpus, config: LadderConfig | None = None, tokenizer: Tokenizer | None = None
    ) -> None:
        self.config = config or LadderConfig()
        self.task = LanguageModelingTask.of(corpus, tokenizer)
        self.tokenizer = self.task.tokenizer
        self.training, validation = self.task.training, self.task.validation
        if len(validation) <= WINDOW or len(self.training) <= self.config.batch_size * WINDOW:
            raise DataError(
                f"ladder: {len(self.training)} tokens to train on and {len(validation)} to evaluate on (must be more "
                f"than {self.config.batch_size * WINDOW} and {WINDOW}: bring a longer text)"
            )
        self.larger = self._larger()
        self.eval_batches = list(windows(validation, batch_size=64, block_size=WINDOW, limit=1000))

    def _larger(self) -> dict[str, int]:
        """The networks that have more parameters than were asked for even when they are smallest, and how many."""
        least = {family.title: family.sized(1, self.tokenizer.vocab_size).count() for family in FAMILIES}
        params = self.config.params
        if params < min(least.values()):
            title = min(least, key=lambda title: least[title])
            rule = f"must be at least {least[title]:,}: so many has the smallest {title}"
            raise ConfigError.of("ladder", {"params": params}, rule)
        return {title: count for title, count in least.items() if count > params}

    def climb(
        self, tell: Tell = _silent, workers: int = 1, failed: Callable[[str], None] = lambda said: None
    ) -> Iterator[Rung]:
        """Every rung, from the lowest; `failed` is told of a network that could not be trained.

        Several `workers` train networks at the same time, to the same bits.
        """
        yield from self.counted()
        items = [(family, seed) for family in FAMILIES for seed in range(self.config.seeds)]
        here = alone(workers)
        results: dict[tuple[str, int], Trained] = {}
        lost: set[str] = set()
        waiting = list(FAMILIES)
        for done, outcome in enumerate(each(partial(self.train, tell if here else None), items, workers), 1):
            family, seed = items[outcome.number]
            if outcome.result is None:
                failed(f"{family.title}, seed {seed}: {outcome.error}")
                lost.add(family.title)
            else:
                results[family.title, seed] = outcome.result
            if not here:
                tell(f"{done} of {len(items)} networks", done / len(items))
            while waiting and (rung := self._rung(waiting[0], results, lost)) is not None:
                waiting.pop(0)
                yield from rung

    def _rung(
        self, family: Family, results: dict[tuple[str, int], Trained], lost: set[str]
    ) -> list[Rung] | None:
        """The rung of a family, none if one of its networks is lost; None if one of them is not trained yet."""
        found = [results.get((family.title, seed)) for seed in range(self.config.seeds)]
        known = [trained for trained in found if trained is not None]
        if family.title in lost:
            return []
        if len(known) < len(found):
            return None
        seconds, bits = sum(each.seconds for each in known), tuple(each.bits_per_byte for each in known)
        return [Rung(family.title, known[0].parameters, known[0].updates, seconds, bits)]

    def counted(self) -> Iterator[Rung]:
        """The models that only count, with Kneser-Ney smoothing."""
        V = self.tokenizer.vocab_size
        ends = Terminals(V, None)  # one text without documents
        for order in (1, 2, self.config.order):
            began = time.perf_counter()
            model = NGram.fit([self.training], order=order, vocab_size=V, ends=ends, smoothing=KneserNey())
            seconds = time.perf_counter() - began
            title = {1: "unigram", 2: "bigram"}.get(order, f"{order}-gram")
            kept = sum(len(level.grams) for level in model.levels)
            yield Rung(title, kept, 0, seconds, (self.task.bits_per_byte(self.surprise(model)),))

    def surprise(self, model: NGram) -> float:
        """Nats per token of the evaluation windows; as for the networks, nothing is known before a window begins."""
        nothing, total, count = self.tokenizer.vocab_size, 0.0, 0
        for inputs, targets in self.eval_batches:
            seen = contexts(inputs, model.order - 1, nothing).reshape(targets.size, -1)  # (B T, n - 1)
            total -= float(np.log(model.probability(seen, targets.ravel())).sum())
            count += targets.size
        return total / count

    def train(self, tell: Tell | None, item: tuple[Family, int]) -> Trained:
        """A network of a family, with a seed; where `tell` is None, in another process than the one that tells."""
        (family, seed), began = item, time.perf_counter()
        with seeded(seed):
            model = self.fitting(family)
        updates = self.updates(model)
        config = TrainConfig(
            max_steps=updates, eval_every=updates, save_every=updates,
            lr=family.lr, weight_decay=family.decay, seed=seed,
        )  # fmt: skip
        batches = text_batches(model, self.training, WINDOW, batch_size=self.config.batch_size, seed=seed)
        trainer = Trainer(model, batches, self.eval_batches, config)
        progress = _Progress(family.title, seed, self.config.seeds, updates, tell or _silent)
        result = trainer.run(progress)
        if result.interrupted:
            raise KeyboardInterrupt
        bits = self.task.bits_per_byte(result.validation)
        return Trained(model.count(), updates, time.perf_counter() - began, bits)

    def fitting(self, family: Family) -> LanguageModel:
        """The largest model of a family within the parameters; the smallest there is if none is."""
        return family.largest(self.config.params, self.tokenizer.vocab_size)

    def updates(self, model: LanguageModel) -> int:
        """How many updates a model gets."""
        steps = self.config.steps
        if self.config.match == "parameters":
            return steps
        gpt = self.fitting(FAMILIES[-1])
        return max(1, min(MOST * steps, round(steps * multiply_adds(gpt) / multiply_adds(model))))


@dataclass
class _Progress(Logger):
    """Progress of a rung: the fraction of all its training that is done."""

    title: str
    seed: int
    seeds: int
    updates: int
    tell: Tell

    def step(self, step: int, *_: Any, **__: Any) -> None:
        self.tell(self.title, (self.seed + step / self.updates) / self.seeds)
