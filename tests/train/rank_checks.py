"""What several ranks must agree on, each check a function; run by `mpiexec -n N python -m tests.train.rank_checks`.

Each rank runs all of them and writes one line of JSON: what was wrong, by the name of the check. One process alone is
asked in the same program: its share is the whole batch.
"""

from __future__ import annotations

import json
import math
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr
from chainrule.data import Batches, Streams
from chainrule.data.batches.labeled import Twins
from chainrule.distributed import exchange, world
from chainrule.distributed.communicator import LINE
from chainrule.errors import ChainruleError
from chainrule.inspect.gradients import parameters
from chainrule.models import IGNORE, make
from chainrule.train import TrainConfig, Trainer
from chainrule.train.log import Logger
from chainrule.train.share import RankShare, Share

IDS = np.random.default_rng(0).integers(0, 11, 2000)
RARE = 11  # a token of the last row alone


class Uneven(Batches):
    """Seven rows; of the first ones most targets do not count, and the last one has a token that no other has."""

    def batch(self, step: int) -> tuple[Any, Any]:
        inputs, targets = super().batch(step)
        inputs, targets = inputs.copy(), targets.copy()
        inputs[-1, 2] = RARE
        targets[:3, 1:] = IGNORE
        return inputs, targets


def trainer(
    *, family: str = "gpt", alone: bool = False, overlap: bool = True, rows: int = 7, **options: Any
) -> Trainer:
    """A new one, always with the same weights; `alone`, as one process would make it."""
    cr.seed(1)
    sizes: dict[str, Any] = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 8, "vocab_size": 12}
    model = make(family, **sizes | ({"dropout": 0.1} if family == "gpt" else {}))
    defaults: dict[str, Any] = {"max_steps": 5, "batch_size": rows, "warmup": 0, "lr": 1e-2, "clip": 0.3}
    batches = Uneven(IDS, batch_size=rows, block_size=8, seed=0)
    made = Trainer(
        model, batches, [batches.batch(n) for n in range(100, 103)], TrainConfig(**defaults | options)
    )
    step = made.gradient
    if alone:
        step.share = Share(model)
        step.optimizer = step.share.optimizer(step.config)
    else:
        assert isinstance(step.share, RankShare) and len(step.share.exchange.cut) > 3
        step.share.overlap = overlap
    return made


class Twinned:
    """Seven texts with their partners; one does not count."""

    tokens = 7

    def batch(self, step: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(step)
        ids, partners = rng.integers(1, 12, size=(2, 7, 6))
        targets = np.zeros(7, int)
        targets[2] = IGNORE
        return Twins(ids, np.ones((7, 6), bool), partners, np.ones((7, 6), bool)), targets


def other(family: str, *, alone: bool = False, rows: int = 7, **options: Any) -> Trainer:
    """A trainer of a recurrent model, or of one whose examples are compared with each other."""
    cr.seed(1)
    if family == "bert-embedder":
        model = make(family, n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=12, dropout=0.0)
        batches: Any = Twinned()
    else:
        model = make(family, n_layer=2, n_embd=8, n_hidden=12, block_size=8, vocab_size=12)
        batches = Streams(IDS, batch_size=rows, block_size=8, seed=0)
    config = TrainConfig(**{"max_steps": 5, "batch_size": rows, "warmup": 0, "lr": 1e-2} | options)
    made = Trainer(model, batches, [batches.batch(n) for n in range(100, 103)], config)
    if alone:
        made.gradient.share = Share(model)
        made.gradient.optimizer = made.gradient.share.optimizer(config)
    return made


def steps(made: Trainer, number: int = 5) -> list[tuple[float, float]]:
    return [made.update(1e-2) for _ in range(number)]


def weights(made: Trainer) -> Any:
    return made.model.parameters().data.copy()


def same_everywhere(array: Any) -> None:
    """All ranks have these bits."""
    np.testing.assert_array_equal(world().from_first(array), array)


def overlap() -> None:
    """Gradients that travel during backward have the bits of those that travel after it."""
    with_it, without = trainer(), trainer(overlap=False)
    exchanged, early = with_it.gradient.share.exchange, []
    finish = exchanged.finish
    exchanged.finish = lambda: (early.append(exchanged.sent), finish())
    assert steps(with_it) == steps(without)
    np.testing.assert_array_equal(weights(with_it), weights(without))
    same_everywhere(weights(with_it))
    assert early[0] == 0 and min(early[1:]) > 1  # the order is learned in the first step


def recompute() -> None:
    """Weights that only a recomputation reaches travel after it."""
    plain, again = trainer(), trainer(recompute=True)
    assert steps(plain) == steps(again)
    np.testing.assert_array_equal(weights(plain), weights(again))


def sharded() -> None:
    """The bits of an optimizer that is not, with 1/n of its state."""
    whole, cut = trainer(), trainer(shard_optimizer=True)
    assert steps(whole) == steps(cut)
    np.testing.assert_array_equal(weights(whole), weights(cut))
    parts, total = cut.gradient.optimizer.arrays["m"], whole.gradient.optimizer.arrays["m"]
    most = total.size / world().size + LINE * len(cut.gradient.share.exchange.cut)
    assert 0 < parts.size <= most < total.size
    state, expected = cut.gradient.arrays(), whole.gradient.arrays()
    if not world().first:
        assert state == {}
        return
    assert state.keys() == expected.keys()
    assert all(np.array_equal(state[name], expected[name]) for name in expected)


def sharding_changes() -> None:
    """A state goes from a sharded optimizer to one that is not, and back, and the steps stay the same."""
    made, undisturbed = trainer(shard_optimizer=True), trainer()
    for shard in (True, False, True):
        assert steps(made, 2) == steps(undisturbed, 2)
        state = world().from_first(made.gradient.arrays())
        made.config = TrainConfig(**vars(made.config) | {"shard_optimizer": not shard})
        made.gradient.prepare()
        made.gradient.load(state)
    np.testing.assert_array_equal(weights(made), weights(undisturbed))


def token_weighted() -> None:
    """Ranks with unequal rows and targets give the loss, the gradient and the update of one process."""
    one, many = trainer(alone=True, accumulate=world().size), trainer()
    np.testing.assert_allclose(steps(many), steps(one), rtol=2e-5)
    np.testing.assert_allclose(weights(many), weights(one), atol=2e-5)
    one.model.eval()
    np.testing.assert_allclose(many.evaluate(), one.model.mean_loss(one.eval_batches), rtol=2e-5)


def fewer_rows_than_ranks() -> None:
    """A rank without rows takes part all the same."""
    rows = world().size - 1
    one = trainer(alone=True, accumulate=rows, rows=rows)
    many = trainer(rows=rows), trainer(rows=rows, shard_optimizer=True)
    expected = steps(one)
    for made in many:
        np.testing.assert_allclose(steps(made), expected, rtol=2e-5)
        same_everywhere(weights(made))


def carried_state() -> None:
    """A recurrent model gives the losses of one process, and every rank has the state of all rows."""
    for family, more in (("lstm", {}), ("gru", {"accumulate": 2}), ("rnn", {"rows": world().size - 1})):
        one, many = other(family, alone=True, **more), other(family, **more)
        np.testing.assert_allclose(steps(many), steps(one), rtol=2e-5)
        np.testing.assert_allclose(weights(many), weights(one), atol=2e-5)
        for found, expected in zip(many.step.state, one.step.state, strict=True):
            for mine, whole in zip(found, expected, strict=True):
                np.testing.assert_allclose(mine, whole, atol=2e-5)
                same_everywhere(mine)


def compared() -> None:
    """Examples are compared with those of all ranks: the loss and the update are those of one process."""
    one, many = other("bert-embedder", alone=True), other("bert-embedder")
    np.testing.assert_allclose(steps(many, 1), steps(one, 1), rtol=1e-5)
    grads = [made.model.parameters().grad for made in (many, one)]
    np.testing.assert_allclose(*grads, atol=1e-6)  # of biases of keys it is 0 but for rounding
    np.testing.assert_allclose(steps(many, 4), steps(one, 4), rtol=1e-4)
    same_everywhere(weights(many))
    again, cut = other("bert-embedder"), other("bert-embedder", shard_optimizer=True)
    assert steps(again) == steps(cut)
    np.testing.assert_array_equal(weights(again), weights(many))


def clipping() -> None:
    """The norm is that of the whole gradient, and the whole gradient is clipped by it."""
    for shard in (False, True):
        one, many = trainer(alone=True, accumulate=world().size), trainer(shard_optimizer=shard)
        (_, expected), (_, norm) = one.update(1e-2), many.update(1e-2)
        assert norm > 0.3  # the limit
        np.testing.assert_allclose(norm, expected, rtol=1e-6)
        many.gradient.share.complete()
        np.testing.assert_allclose(np.linalg.norm(many.model.parameters().grad), 0.3, rtol=1e-5)


def running_mean() -> None:
    """The mean of the weights is that of one process, and the same on all ranks."""
    one, many = trainer(alone=True, accumulate=world().size, ema=0.9), trainer(ema=0.9, shard_optimizer=True)
    steps(one), steps(many)
    np.testing.assert_allclose(many.gradient.average.mean, one.gradient.average.mean, atol=2e-5)
    same_everywhere(many.gradient.average.mean)


def loss_scale() -> None:
    """A gradient that overflows on one rank costs all ranks the step, and halves the factor of all."""
    for shard in (False, True):
        made = trainer(precision="fp16", shard_optimizer=shard)
        made.update(1e-2)
        before, factor = weights(made), made.gradient.scale.factor
        made.model.loss = _broken(made.model, world().size - 1, math.inf)
        made.update(1e-2)
        assert made.gradient.scale.factor == factor / 2 and "in fp16" in made.gradient.skips.reason
        np.testing.assert_array_equal(weights(made), before)


def _broken(model: Any, rank: int, by: float) -> Callable[..., Any]:
    """The loss, which is not finite on one rank."""
    loss = model.loss
    return lambda *batch: loss(*batch) * (by if world().rank == rank else 1.0)


def on_nan() -> None:
    """A row of one rank that gives NaN: all leave the step out, or all stop, and the cause is named."""
    for shard in (False, True):
        skipping = poisoned(on_nan="skip", shard_optimizer=shard)
        before = weights(skipping)
        loss, norm = skipping.update(1e-2)
        assert math.isnan(loss) and math.isnan(norm)
        reason = skipping.gradient.skips.reason
        assert f"[{RARE}, 0] is nan" in reason and f"row 6, position 2, token {RARE}" in reason
        np.testing.assert_array_equal(weights(skipping), before)
        try:
            poisoned(on_nan="stop", shard_optimizer=shard).update(1e-2)
        except ChainruleError as error:
            assert "the step was not taken" in str(error)
        else:
            raise AssertionError("it went on")


def poisoned(**options: Any) -> Trainer:
    """A model that gives NaN for the rare token, which is in the last row alone."""
    made = trainer(family="neox", **options)
    made.model.parameters()["embed_in.weight"].array[RARE] = math.nan
    return made


def doctor() -> None:
    """What the doctor is shown of gradients and updates is of the whole batch, sharded or not, on every rank."""
    reports = []
    for shard in (False, True):
        made = trainer(shard_optimizer=shard)
        steps(made, 3)
        made.gradient.share.complete()
        before = weights(made)
        reports.append(parameters(made.model.parameters(), made.gradient.optimizer, 1e-2))
        np.testing.assert_array_equal(weights(made), before)
    assert reports[0] == reports[1]
    same_everywhere(np.array([[r.grad_norm, r.update_norm] for r in reports[1]]))
    whole = trainer(alone=True, accumulate=world().size)
    steps(whole, 3)
    whole.gradient.share.complete()
    alone = parameters(whole.model.parameters(), whole.gradient.optimizer, 1e-2)
    np.testing.assert_allclose([r.grad_norm for r in reports[1]], [r.grad_norm for r in alone], rtol=1e-3)


def whole_run() -> None:
    """The loop, with evaluations and the watch, ends alike on all ranks."""
    made = trainer(max_steps=4, eval_every=2, watch_every=2, shard_optimizer=True)
    result = made.run(Logger())
    same_everywhere(np.array([result.validation, result.best[1]]))
    same_everywhere(weights(made))


CHECKS = (
    overlap, recompute, sharded, sharding_changes, token_weighted, fewer_rows_than_ranks, carried_state,
    compared, clipping, running_mean, loss_scale, on_nan, doctor, whole_run,
)  # fmt: skip


def main(folder: Path) -> None:
    exchange.BUCKET, exchange.MESSAGE = 700, 16  # several buckets in a small model
    wrong = {check.__name__: "not reached" for check in CHECKS}
    for check in CHECKS:
        failed = ""
        try:
            check()
        except Exception:
            failed = traceback.format_exc()
        if world().any(bool(failed)):
            wrong[check.__name__] = failed or "wrong on another rank"
            break  # ranks may be out of step now
        del wrong[check.__name__]
    (folder / f"{world().rank}.json").write_text(json.dumps(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
