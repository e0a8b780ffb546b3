"""Scheduled sampling: in training the decoder reads some of its own guesses instead of the true tokens.

With teacher forcing a model never meets its own mistakes before it is used. Here the fraction of inputs that are
its own guesses grows from 0 to `fraction` in the first `steps` steps. A guess is the likeliest token after the true
ones before it, so all guesses of a batch take one more forward pass. No gradient goes through them.
(Bengio et al. 2015)
"""

from __future__ import annotations

import numpy as np

from chainrule.data import BatchSource, Pair, PairBatches
from chainrule.errors import ConfigError
from chainrule.models import IGNORE, EncoderDecoder
from chainrule.random import generator
from chainrule.types import Ids


class ScheduledSampling(BatchSource):
    """The pairs of `batches` with some inputs of the decoder replaced, by the model as it is when they are asked for.

    >>> import chainrule as cr
    >>> config = cr.models.Seq2SeqConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> pairs = cr.data.PairBatches([[5, 6]], [[7, 8]], start=1, end=2, batch_size=1, block_size=8)
    >>> batches = cr.tasks.ScheduledSampling(pairs, cr.models.Seq2Seq(config), fraction=0.5, steps=100)
    >>> [batches.fraction_at(step) for step in (0, 50, 100, 200)]
    [0.0, 0.25, 0.5, 0.5]
    """

    def __init__(
        self, batches: PairBatches, model: EncoderDecoder, *, fraction: float, steps: int, seed: int = 0
    ) -> None:
        if not 0 <= fraction <= 1:
            raise ConfigError(f"ScheduledSampling: fraction is {fraction} (must be from 0 to 1)")
        if steps < 1:
            raise ConfigError(f"ScheduledSampling: steps is {steps} (must be at least 1)")
        self.batches = batches
        self.model = model
        self.fraction = fraction
        self.steps = steps
        self.seed = seed

    @property
    def tokens(self) -> int:
        """How many targets one batch holds on average."""
        return self.batches.tokens

    def fraction_at(self, step: int) -> float:
        """The fraction of guesses among the decoder's inputs."""
        return self.fraction * min(step / self.steps, 1.0)

    def batch(self, step: int) -> tuple[Pair, Ids]:
        """The batch of this step; its targets are the true ones"""
        pair, targets = self.batches.batch(step)
        fraction, later = self.fraction_at(step), pair.target[:, 1:]  # the start is given, not guessed
        if not fraction or not later.size:
            return pair, targets
        chosen = generator("scheduled sampling", step, seed=self.seed).random(later.shape) < fraction
        chosen &= targets[:, 1:] != IGNORE
        target = pair.target.copy()
        target[:, 1:] = np.where(chosen, self.guesses(pair), later)
        return pair._replace(target=target), targets

    def guesses(self, pair: Pair) -> Ids:
        """The likeliest tokens after the start (B, T - 1), each after the true ones before it"""
        with self.model.answering():
            logits = self.model(pair.source, pair.source_mask, pair.target[:, :-1]).numpy()
        likeliest: Ids = logits.argmax(axis=-1)
        return likeliest
