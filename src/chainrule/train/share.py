"""The part of a gradient that a process computes and updates: all of it, or one share of several ranks.

What a step does with the gradient (its norm, clipping, leaving out what is not finite) it does with that of the whole
batch, by whichever rank it was computed.
"""

from __future__ import annotations

import math

import numpy as np

from chainrule import autograd, random
from chainrule.autograd import Tensor
from chainrule.autograd.tape import Done
from chainrule.autograd.types import Array
from chainrule.distributed import Communicator, Exchange, buckets, world
from chainrule.errors import ConfigError
from chainrule.models import Compiled, Model
from chainrule.models.gradient import backward, batch_count
from chainrule.models.microbatch import Batch, State, row_count, rows_of, take
from chainrule.optim import AdamW, global_norm
from chainrule.optim.clip import multiply, squared_norm
from chainrule.optim.sharding import Shard, ShardedAdamW
from chainrule.train.config import TrainConfig


class Share:
    """One process computes everything."""

    ranks = 1

    def __init__(self, model: Model, *, compiled: bool = True) -> None:
        self.model, self.parameters = model, model.parameters()
        self.compiled = Compiled(model) if compiled else None
        self.counted = 1.0  # how many times the gradient in the block has counted in the step

    @classmethod
    def of(cls, model: Model, config: TrainConfig) -> Share:
        """The share of this process."""
        ranks = world()
        if ranks.size > 1:
            return RankShare(model, ranks, sharded=config.shard_optimizer)
        return cls(model, compiled=config.compile)

    def optimizer(self, config: TrainConfig) -> AdamW:
        """AdamW of what this process updates."""
        return AdamW(self.parameters, config.lr, (0.9, config.beta2), weight_decay=config.weight_decay)

    def backward(self, batch: Batch, accumulate: int | None, factor: float) -> tuple[float, State | None]:
        """Fill the gradient block anew; the loss of the batch, and the state after it."""
        gradient = None if self.compiled is None else self.compiled.gradient
        self.counted = 1.0
        with self.parameters.replaced():
            return backward(self.model, batch, accumulate=accumulate, factor=factor, gradient=gradient)

    def norm(self) -> float:
        """The norm of the gradient of the batch."""
        return global_norm(self.parameters)

    def update(self, optimizer: AdamW, lr: float, scale: float) -> None:
        """One step by `scale` times this gradient."""
        optimizer.step(lr, scale=scale)
        self.counted = scale

    def complete(self) -> None:
        """Bring the gradient of the last step into the block, whole and as it counted, for those who look at it."""
        multiply(self.parameters, self.counted)
        self.counted = 1.0

    def rest(self) -> None:
        """Free the memory of the compiled step."""
        if self.compiled is not None:
            self.compiled.forget()


class RankShare(Share):
    """Each rank computes the gradient of some rows, and adds up its shards of those of all ranks.

    Then every rank gets all sums; or, `sharded`, it updates its shards alone, and every rank gets all new values.
    Gradients travel while earlier layers are still computed: see `Exchange`.
    """

    overlap = True

    def __init__(self, model: Model, ranks: Communicator, *, sharded: bool) -> None:
        super().__init__(model, compiled=False)  # gradients travel between the ops of backward
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

    def backward(self, batch: Batch, accumulate: int | None, factor: float) -> tuple[float, State | None]:
        self.parameters.zero_grad()  # shards travel whole, also where nothing is added
        self.counted = 1.0
        self.missing = [0] * len(self.exchange.cut)
        for bucket in self.bucket.values():
            self.missing[bucket] += 1
        share, done = (self.world.rank, self.ranks), self._done if self.overlap else None
        state = None
        if self.model.divisible:
            loss, state = backward(
                self.model, batch, accumulate=accumulate, factor=factor, share=share, done=done
            )
        else:
            loss = self._compared(batch, factor, done)
        self.exchange.finish()  # before anything else is summed: ranks may be at different buckets
        if batch.state is not None:
            count = batch_count(self.model, batch.inputs, accumulate, self.ranks)
            mine = rows_of(row_count(batch.state), count, share)
            state = self._whole_state(batch.state, state or batch.state, mine)
        total = np.array([loss])
        self.world.sum(total)
        for _, buffer in self.model.named_buffers():  # running statistics, each rank's of its own rows
            mean = buffer.reshape(-1) / self.ranks
            self.world.sum(mean)
            buffer[...] = mean.reshape(buffer.shape)
        return float(total[0]), state

    def _whole_state(self, before: State, own: State, mine: Array) -> State:
        """The state of all rows, from which any number of ranks continue; before and after a batch it is as large."""
        layers = [zip(*layer, strict=True) for layer in zip(before, own, strict=True)]
        return tuple(tuple(self._of_all(a.shape, b, mine) for a, b in layer) for layer in layers)

    def _compared(self, batch: Batch, factor: float, done: Done | None) -> float:
        """The gradient of examples that are compared with all others of the batch; the loss, from the first rank.

        Each rank makes the vectors of its rows; all of them compare the vectors of all, to the same bits; and each goes
        back from the gradient of its own vectors to the parameters.
        """
        inputs, targets = batch.inputs, batch.targets
        if not self.model.counts(inputs, targets)[0]:
            return 0.0
        rows = row_count(inputs)
        mine = rows_of(rows, self.ranks, (self.world.rank, self.ranks))
        some = slice(mine[0], mine[-1] + 1) if len(mine) else slice(0, 1)  # without rows: for the shapes
        with random.part(self.world.rank):
            own = self.model.to_compare(take(inputs, some))
        arrays = (self._of_all((rows, *each.shape[1:]), each.numpy(), mine) for each in own)
        whole = tuple(Tensor(array, requires_grad=True) for array in arrays)
        loss = self.model.compared(whole, targets)
        autograd.backward([(loss, loss.dtype.type(factor))])
        if len(mine):
            grads = [np.asarray(each.grad)[mine] for each in whole]
            autograd.backward(list(zip(own, grads, strict=True)), done=done)
        return loss.item() if self.world.first else 0.0

    def _of_all(self, shape: tuple[int, ...], own: Array, mine: Array) -> Array:
        """An array of this shape with the rows of all ranks; `mine` are the places of those of this one."""
        whole = np.zeros(shape, own.dtype)
        whole[mine] = own[: len(mine)]
        self.world.sum(whole.reshape(-1))  # elsewhere a row is 0, so that nothing is rounded
        return whole

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

    def norm(self) -> float:
        squares = np.array([squared_norm(self.shard)])  # of this rank's shards
        self.world.sum(squares)
        return math.sqrt(squares[0]) if squares[0] >= 0 else math.nan

    def complete(self) -> None:
        if self.sharded:
            self.shard.gather(self.parameters.grad)
        super().complete()


def check_alone(command: str, ranks: int, why: str) -> None:
    """Refuse to train by several processes what must be trained by one."""
    if ranks > 1:
        raise not_alone(command, why)


def not_alone(command: str, why: str) -> ConfigError:
    """Several processes were started for a training of one."""
    rule = f"must be one, whose threads use all cores: {why}; start it without mpiexec"
    return ConfigError(f"{command}: started as several processes ({rule})")
