"""What holds of every family of models: right gradients as a whole, and evaluation that leaves no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import tape
from chainrule.data import Bag, Masked, Pair, Segmented, Twins
from chainrule.models import IGNORE, Model, make
from chainrule.models.registry import KNOWN, family
from chainrule.train import TrainConfig, Trainer

SIZES = {
    "n_layer": 1,
    "n_head": 2,
    "n_kv_head": 1,
    "n_embd": 8,
    "n_hidden": 12,
    "block_size": 6,
    "vocab_size": 9,
    "classes": 3,
    "dropout": 0.3,
}
RNG = np.random.default_rng(0)
IDS, OTHER = RNG.integers(9, size=(2, 3, 6))
MASK = np.arange(6) < np.array([6, 4, 5])[:, None]
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1]] * 3)
HIDDEN = np.where(RNG.random((3, 6)) < 0.4, OTHER, IGNORE)  # the words that count
BATCHES: dict[str, tuple[Any, np.ndarray]] = {
    "bert": (Masked(IDS, MASK, SEGMENTS, np.array([0, 1, IGNORE])), HIDDEN),
    "bert-classifier": (Segmented(IDS, MASK, SEGMENTS), np.array([0, 2, 1])),
    "bert-tagger": (Segmented(IDS, MASK, SEGMENTS), OTHER % 3),
    "bow-classifier": (Bag(IDS, np.where(MASK, 1 + IDS % 2, 0)), np.array([0, 2, 1])),
    "bert-embedder": (Twins(IDS, MASK, OTHER, MASK), np.zeros(3, int)),
    "seq2seq": (Pair(IDS, MASK, OTHER), np.roll(OTHER, -1, axis=1)),
    "t5": (Pair(IDS, MASK, OTHER), np.roll(OTHER, -1, axis=1)),
}
TEXT = (IDS, np.where(MASK, np.roll(IDS, -1, axis=1), IGNORE))


def small(name: str, **sizes: Any) -> Model:
    cr.seed(0)
    fields = family(name).config.__dataclass_fields__
    model: Model = make(name, **{size: n for size, n in (SIZES | sizes).items() if size in fields})
    return model


@pytest.mark.requirement("R-039", "R-358")
@pytest.mark.parametrize("name", KNOWN)
def test_every_gradient_of_every_family(name: str) -> None:
    """Loss -> output -> blocks -> embeddings, each parameter against central differences in float64."""
    model = small(name).to(np.float64)
    noise = np.random.default_rng(2)
    model.load({name: value + 0.1 * noise.normal(size=value.shape) for name, value in model.state().items()})
    inputs, targets = BATCHES.get(name, TEXT)

    def loss() -> cr.Tensor:
        with cr.random.step(0):  # the same dropout every time
            return model.loss(inputs, targets)

    assert cr.gradcheck_model(model.parameters(), loss, step=1e-5) <= 1e-6
    loss().backward()
    unused = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert unused == []


@pytest.mark.requirement("R-479")
@pytest.mark.parametrize("name", KNOWN)
def test_evaluation_drops_nothing_and_leaves_no_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the same loss, running statistics untouched, and not one record of a graph."""
    model, (inputs, targets) = small(name), BATCHES.get(name, TEXT)
    batch = type("", (), {"tokens": 9, "batch": lambda self, step: (inputs, targets)})()
    trainer = Trainer(model, batch, [(inputs, targets)], TrainConfig(max_steps=9, warmup=0))
    drops = "dropout" in family(name).config.__dataclass_fields__
    with cr.random.seeded(0):
        trainer.update(1e-2)  # running statistics, if there are any, have moved
        if drops:
            with cr.random.step(1):
                first = model.train().loss(inputs, targets).item()
            with cr.random.step(2):
                assert model.loss(inputs, targets).item() != first
    state, gradient = model.state(), model.parameters().grad.copy()
    buffers = {name: buffer.copy() for name, buffer in model.named_buffers()}

    def record(*args: Any) -> None:
        raise AssertionError(f"a graph is kept: {args[0]}")

    monkeypatch.setattr(tape, "Record", record)
    once, twice = trainer.evaluate(), trainer.evaluate()
    with model.answering():
        assert model.loss(inputs, targets).item() == pytest.approx(once, rel=1e-5)
    assert once == twice and not model.training
    assert all((model.state()[name] == value).all() for name, value in state.items())
    assert all((buffer == buffers[name]).all() for name, buffer in model.named_buffers())
    np.testing.assert_array_equal(model.parameters().grad, gradient)
    with pytest.raises(AssertionError, match="a graph is kept"):
        model.train().loss(inputs, targets)


@pytest.mark.requirement("R-479")
def test_batch_norm_evaluates_with_running_statistics() -> None:
    """A text alone and the same text among others: in evaluation the same logits, in training not."""
    model = small("mlp")
    for _ in range(3):
        model.loss(*TEXT)
    assert dict(model.named_buffers())
    together, alone = model.eval()(IDS).numpy(), model(IDS[:1]).numpy()
    np.testing.assert_allclose(together[:1], alone, rtol=1e-5)
    together, alone = model.train()(IDS).numpy(), model(IDS[:1]).numpy()
    assert np.abs(together[:1] - alone).max() > 1e-4
