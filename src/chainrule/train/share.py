"""The part of a gradient that a process computes and updates: all of it, or one share of several ranks.

What a step does with the gradient (its norm, clipping, leaving out what is not finite) it does with that of the whole
batch, whoever computed it.
"""

from __future__ import annotations

import math

import numpy as np

from chainrule.autograd import Tensor
from chainrule.distributed import Communicator, Exchange, buckets, world
from chainrule.errors import ConfigError
from chainrule.models import Model
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch, State
from chainrule.optim import AdamW, clip_global_norm
from chainrule.optim.clip import shorten, squared_norm
from chainrule.optim.sharding import Shard, ShardedAdamW
from chainrule.train.config import TrainConfig


class Share:
    """One process computes everything."""

    ranks = 1

    def __init__(self, model: Model) -> None:
        self.model, self.parameters = model, model.parameters()

    @classmethod
    def of(cls, model: Model, config: TrainConfig) -> Share:
        """The share of this process."""
        ranks = world()
        return RankShare(model, ranks, sharded=config.shard_optimizer) if ranks.size > 1 else cls(model)

    def optimizer(self, config: TrainConfig) -> AdamW:
        """AdamW of what this process updates."""
        return AdamW(self.parameters, config.lr, (0.9, config.beta2), weight_decay=config.weight_decay)

    def backward(self, batch: Batch, accumulate: int, factor: float) -> tuple[float, State | None]:
        """Fill the gradient block, which is zero; the loss of the batch, and the state after it."""
        return backward(self.model, batch, accumulate=accumulate, factor=factor)

    def clip(self, limit: float) -> float:
        """Clip the gradient of the batch; its norm before."""
        return clip_global_norm(self.parameters, limit)

    def complete(self) -> None:
        """Bring the whole gradient of the last step into the block, for those who look at it."""


class RankShare(Share):
    """Each rank computes the gradient of some rows, and adds up its stretches of those of all ranks.

    Then every rank gets all sums; or, `sharded`, it updates its stretches alone, and every rank gets all new values.
    Gradients travel while earlier layers are still computed: see `Exchange`.
    """

    overlap = True

    def __init__(self, model: Model, ranks: Communicator, *, sharded: bool) -> None:
        super().__init__(model)
        check_ranks(model, ranks.size)
        self.world, self.ranks, self.sharded = ranks, ranks.size, sharded
        grads = self.parameters.grad
        places = [place for place in self.parameters.places if place[2] <= grads.size]
        cut = buckets([stop for _, _, stop in places], ranks.size)
        self.exchange = Exchange(ranks, grads, cut, gathers=not sharded)
        self.shard = Shard(self.parameters, self.exchange)
        number = {id(param): sum(bucket.stop <= start for bucket in cut) for param, start, _ in places}
        self.bucket = {id(param): number[id(param)] for param, *_ in places if param.requires_grad}
        self.missing: list[int] = []  # of each bucket, gradients that are not complete

    def optimizer(self, config: TrainConfig) -> AdamW:
        if not self.sharded:
            return super().optimizer(config)
        block, betas = self.shard, (0.9, config.beta2)
        return ShardedAdamW(block, config.lr, betas, weight_decay=config.weight_decay)

    def backward(self, batch: Batch, accumulate: int, factor: float) -> tuple[float, State | None]:
        self.missing = [0] * len(self.exchange.cut)
        for bucket in self.bucket.values():
            self.missing[bucket] += 1
        share, done = (self.world.rank, self.ranks), self._done if self.overlap else None
        loss, state = backward(
            self.model, batch, accumulate=accumulate, factor=factor, share=share, done=done
        )
        self.exchange.finish()
        total = np.array([loss])
        self.world.sum(total)
        for _, buffer in self.model.named_buffers():  # running statistics, each rank's of its own rows
            mean = buffer.reshape(-1) / self.ranks
            self.world.sum(mean)
            buffer[...] = mean.reshape(buffer.shape)
        return float(total[0]), state

    def _done(self, leaf: Tensor) -> None:
        """The gradient of a parameter is complete."""
        bucket = self.bucket.get(id(leaf))
        if bucket is None:
            return
        self.missing[bucket] -= 1
        if self.missing[bucket] == 0:
            self.exchange.ready(bucket)
        else:
            self.exchange.advance()

    def clip(self, limit: float) -> float:
        squares = np.array([squared_norm(self.shard)])  # of this rank's stretches
        self.world.sum(squares)
        norm = math.sqrt(squares[0]) if squares[0] >= 0 else math.nan
        shorten(self.shard if self.sharded else self.parameters, norm, limit)
        return norm

    def complete(self) -> None:
        if self.sharded:
            self.shard.gather(self.parameters.grad)


def check_ranks(model: Model, ranks: int) -> None:
    """Several processes train a model of which each can take some rows of a batch."""
    if not model.divisible or model.initial_state(1) is not None:
        check_alone(
            model,
            ranks,
            "its examples are compared with each other" if not model.divisible else "it carries a state",
        )


def check_alone(model: Model, ranks: int, why: str) -> None:
    """Refuse to train by several processes what must be trained by one."""
    if ranks > 1:
        rule = "must be trained by one process"
        raise ConfigError(f"train: {type(model).__name__} with {ranks} ranks ({rule}: {why})")
