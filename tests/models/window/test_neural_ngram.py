"""The n-gram as a network: both forms equal, and training finds what counting finds."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.models import IGNORE, NeuralNGram, NeuralNGramConfig, NGram, Terminals
from chainrule.optim import SGD, Adam
from chainrule.train import TrainConfig, Trainer
from tests.trace.measured import tape
from tests.vectors import vector

TEXT = "the rain in spain stays mainly in the plain and the train in the lane came late again "
SYMBOLS = sorted(set(TEXT))
V = len(SYMBOLS)
IDS = np.array([[SYMBOLS.index(c) for c in TEXT]])


def model_of(block_size: int = 1, vocab_size: int = V) -> NeuralNGram:
    return NeuralNGram(NeuralNGramConfig(block_size=block_size, vocab_size=vocab_size))


def drawn(block_size: int, vocab_size: int = V) -> NeuralNGram:
    """A model in float64 with random weights."""
    model = model_of(block_size, vocab_size).to(np.float64)
    model.weight.data = np.random.default_rng(0).normal(size=model.weight.shape)
    return model


@pytest.mark.requirement("R-192", "R-193")
def test_logits_of_the_worked_example() -> None:
    v = vector("der-ngram-einsum")
    model = model_of(2, 3).to(np.float64)
    model.weight.data = np.array(v.inputs["W"])
    v.check(model.predict(np.array(v.inputs["XS"])).numpy())


@pytest.mark.requirement("R-193")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_lookup_equals_the_product_with_one_hot_rows(n: int) -> None:
    model, contexts = drawn(n), np.random.default_rng(1).integers(V, size=(20, n))
    one_hot = ops.one_hot(contexts, V, np.float64)  # (m, n, V)
    want = np.einsum("mnv,nvw->mw", one_hot, model.weight.data)
    got = model.predict(contexts)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    kept = [x for record in tape(got) for x in record.saved if isinstance(x, np.ndarray) and x.size > 1]
    (rows,) = [x for x in kept if x.dtype.kind == "i"]  # what is stored of the contexts
    assert rows.size * V == one_hot.size and rows.nbytes * V == one_hot.nbytes
    assert all(x is rows or x.base is model.parameters().data for x in kept)


@pytest.mark.requirement("R-194")
def test_one_hot_slice_of_a_4_gram() -> None:
    slice_ = ops.one_hot(IDS[0, :3], V)  # (n - 1, V)
    assert slice_.shape == (3, V) and slice_.sum() == 3 and (slice_.sum(axis=1) == 1).all()


@pytest.mark.requirement("R-195")
def test_softmax_of_log_counts_is_the_share_of_counts() -> None:
    counts = np.random.default_rng(0).integers(1, 100, size=(V, V)).astype(float)
    np.testing.assert_allclose(
        ops.softmax(np.log(counts)), counts / counts.sum(axis=1, keepdims=True), rtol=0, atol=1e-12
    )


@pytest.mark.requirement("R-196")
def test_equal_contexts_have_equal_rows() -> None:
    p = ops.softmax(drawn(2)(IDS).numpy()[0])
    contexts = [tuple(IDS[0, t - 1 : t + 1]) for t in range(1, IDS.shape[1])]
    first = {c: p[t] for t, c in reversed(list(enumerate(contexts, 1)))}
    assert len(first) < len(contexts)
    assert all((p[t] == first[c]).all() for t, c in enumerate(contexts, 1))


@pytest.mark.parametrize("n", [1, 3])
def test_every_gradient_in_float64(n: int) -> None:
    model, ids = drawn(n, 6), np.random.default_rng(2).integers(6, size=(3, 5))
    targets = np.roll(ids, -1, axis=1)
    targets[0, 2:] = IGNORE
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(ids, targets)) <= 1e-6


def test_before_the_text_nothing_is_added() -> None:
    model = drawn(3)
    logits = model(IDS[:, :4]).numpy()[0]
    W, ids = model.weight.data, IDS[0]
    np.testing.assert_allclose(logits[0], W[2, ids[0]])
    np.testing.assert_allclose(logits[1], W[1, ids[0]] + W[2, ids[1]])
    np.testing.assert_allclose(logits[3], W[0, ids[1]] + W[1, ids[2]] + W[2, ids[3]])


def test_the_loss_counts_only_targets_that_count() -> None:
    model = drawn(2)
    targets = np.roll(IDS, -1, axis=1)
    targets[:, ::3] = IGNORE
    kept = targets[0] != IGNORE
    want = ops.cross_entropy(model(IDS).numpy()[0][kept], targets=targets[0][kept])
    assert model.loss(IDS, targets).item() == pytest.approx(float(want), rel=1e-12)


def train(model: NeuralNGram, steps: int, lr: float, penalty: float = 0.0) -> list[float]:
    """Full-batch training on the text; the mean loss before each step, without the penalty."""
    optimizer = Adam(model.parameters(), lr) if steps > 100 else SGD(model.parameters(), lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.loss(IDS[:, :-1], IDS[:, 1:])
        losses.append(loss.item())
        if penalty:
            loss = loss + penalty * (model.weight * model.weight).mean()
        loss.backward()
        optimizer.step()
    return losses


class EveryText:
    """The full batch at every step."""

    tokens = IDS.size - 1

    def batch(self, step: int) -> tuple[Array, Array]:
        return IDS[:, :-1], IDS[:, 1:]


@pytest.mark.requirement("R-197")
def test_fifty_full_batch_steps_of_the_trainer_each_lower_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that `chainrule train` runs; what the optimizer gets is the gradient of this step alone."""
    model, other = model_of(), model_of()
    config = TrainConfig(max_steps=50, warmup=0, lr=0.02, weight_decay=0.0, clip=1e9)
    trainer = Trainer(model, EveryText(), [], config)
    step, gradients = trainer.step.optimizer.step, []

    def watched(lr: float, **options: float) -> None:
        other.load(model.state())
        other.parameters().zero_grad()
        other.loss(*EveryText().batch(0)).backward()
        gradients.append(model.parameters().grad.copy())
        np.testing.assert_array_equal(gradients[-1], other.parameters().grad)
        step(lr, **options)

    monkeypatch.setattr(trainer.step.optimizer, "step", watched)
    losses = [trainer.update(0.02)[0] for _ in range(50)]
    assert losses[0] == pytest.approx(math.log(V), rel=1e-6)
    assert len(gradients) == 50 and all(after < before for before, after in pairwise(losses))
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.requirement("R-197")
def test_fifty_small_full_batch_steps_each_lower_the_loss() -> None:
    model = model_of()
    losses = train(model, 50, 5.0)
    assert losses[0] == pytest.approx(math.log(V), rel=1e-6)
    assert all(after < before for before, after in pairwise(losses))
    first = model.parameters().grad.copy()
    model.parameters().zero_grad()
    model.loss(IDS[:, :-1], IDS[:, 1:]).backward()
    assert np.linalg.norm(model.parameters().grad) < np.linalg.norm(first)  # not added to the old one


@pytest.mark.requirement("R-198")
def test_gradient_descent_finds_the_count_model() -> None:
    counted = NGram.fit([IDS[0]], order=2, vocab_size=V, ends=Terminals(V, None))
    p = counted.probability(IDS[0, :-1, None], IDS[0, 1:])
    assert train(model_of(), 600, 0.1)[-1] == pytest.approx(-np.log(p).mean(), abs=0.02)


@pytest.mark.requirement("R-199")
def test_a_larger_penalty_gives_flatter_rows() -> None:
    def peak(penalty: float) -> Array:
        model = model_of()
        train(model, 300, 0.1, penalty)
        return ops.softmax(model.weight.data[0]).max(axis=1).mean()

    peaks = [peak(penalty) for penalty in (0.0, 1.0, 100.0)]
    assert peaks[0] > peaks[1] > peaks[2]
    assert peaks[2] < 1.5 / V


def test_bad_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="block_size is 0"):
        NeuralNGramConfig(block_size=0)
    with pytest.raises(ShapeError, match=r"NeuralNGram: ids \(3,\)"):
        model_of()(np.array([1, 2, 3]))
    assert model_of(3).count() == NeuralNGramConfig(block_size=3, vocab_size=V).n_params == 3 * V * V
