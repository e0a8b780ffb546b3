"""Train and validation side by side, and the model on its own text."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.doctor import Code
from chainrule.doctor.rules import of_splits
from chainrule.errors import ConfigError, DataError
from chainrule.inspect import exposure, split_losses
from chainrule.inspect.generalization import SplitLosses
from chainrule.models import GPT, GPTConfig, LanguageModel


class Spy(LanguageModel):
    """An embedding, batch norm and dropout; counts its losses and the mode they were asked in."""

    def __init__(self) -> None:
        self.config = GPTConfig(vocab_size=11, block_size=8)
        self.table = cr.nn.Embedding(11, 11)
        self.norm = cr.nn.BatchNorm(11)
        self.drop = cr.nn.Dropout(0.5)
        self.asked: list[bool] = []

    def forward(self, ids: np.ndarray) -> cr.Tensor:
        return self.drop(self.norm(self.table(ids)))

    def loss(self, ids: np.ndarray, targets: np.ndarray) -> cr.Tensor:
        self.asked.append(self.training)
        return super().loss(ids, targets)


def batches(n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    ids = np.random.default_rng(seed).integers(11, size=(n, 2, 9))
    return [(rows[:, :-1], rows[:, 1:]) for rows in ids]


@pytest.mark.requirement("R-231")
def test_splits_side_by_side_change_nothing() -> None:
    cr.seed(0)
    model = Spy().train()
    before = model.state()
    train, validation = batches(6, 1), batches(5, 2)
    found = split_losses(model, train, validation, batches=5)
    assert model.asked == [False] * 10 and model.training and model.norm.training
    assert found.batches == 5
    for name, value in model.state().items():
        assert (value == before[name]).all(), name
    model.eval()
    one_by_one = [model.loss(*batch).item() for batch in train[:5]]
    assert found.train == pytest.approx(np.mean(one_by_one), rel=1e-6)
    with pytest.raises(DataError, match=r"5 batches in a split \(must be at least 6\)"):
        split_losses(model, train, validation, batches=6)


def test_targets_that_do_not_count_have_no_weight() -> None:
    cr.seed(0)
    model = Spy()
    (a, ta), (b, tb) = batches(2, 3)
    tb = np.where(np.arange(8) < 2, tb, -1)
    found = split_losses(model, [(a, ta), (b, tb)], [(a, ta), (a, ta)], batches=2)
    model.eval()
    expected = (16 * model.loss(a, ta).item() + 4 * model.loss(b, tb).item()) / 20
    assert found.train == pytest.approx(expected, rel=1e-6)


def test_overfitting_is_said() -> None:
    cr.seed(0)
    model = GPT(GPTConfig(n_layer=1, n_head=1, n_embd=32, block_size=8, vocab_size=11))
    train, validation = batches(1, 1), batches(1, 2)
    optimizer = cr.optim.Adam(model.parameters(), 1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        model.loss(*train[0]).backward()
        optimizer.step()
    found = split_losses(model, train, validation, batches=1)
    assert found.validation > found.train + 1 and of_splits(found).code is Code.SPLITS_OVERFIT


FALLING, FLAT = [4.0 - 0.05 * step for step in range(40)], [2.0] * 40


@pytest.mark.parametrize(
    ("train", "validation", "trained", "evaluated", "code"),
    [
        (3.38, 3.40, FALLING, [3.40], Code.SPLITS_LEARNING),
        (3.38, 3.40, [3.4], [], Code.SPLITS_LEARNING),  # hardly begun
        (2.00, 2.01, FLAT, [2.2, 2.01], Code.SPLITS_OK),
        (0.07, 0.58, FALLING, [0.6, 0.58], Code.SPLITS_APART),
        (0.07, 0.58, FALLING, [0.6, 0.5830, 0.5834], Code.SPLITS_LEVEL),
        (0.07, 0.60, FALLING, [0.6, 0.5, 0.6], Code.SPLITS_OVERFIT),
    ],
)
def test_what_still_falls_is_not_at_its_end(
    train: float, validation: float, trained: list[float], evaluated: list[float], code: Code
) -> None:
    losses = SplitLosses(train, validation, 8)
    assert of_splits(losses, trained=trained, evaluated=evaluated).code is code


@pytest.mark.requirement("R-229")
def test_teacher_forcing_and_own_prefixes() -> None:
    """A model of counting learns it from true text; from its own mistakes on it cannot know the true text."""
    cr.seed(0)
    model = GPT(GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=16, vocab_size=11))
    starts = np.random.default_rng(0).integers(11, size=(16, 1))
    ids = (starts + np.arange(17)) % 11
    batch = ids[:, :-1], ids[:, 1:]
    optimizer = cr.optim.Adam(model.parameters(), 1e-2)
    for _ in range(15):
        optimizer.zero_grad()
        model.loss(*batch).backward()
        optimizer.step()
    found = exposure(model, batch, given=4)
    assert found.own_prefix > found.teacher_forced > 0 and found.own_text > 0
    assert found.gap == found.own_prefix - found.teacher_forced
    assert found == exposure(model, batch, given=4) != exposure(model, batch, given=4, seed=1)
    with pytest.raises(ConfigError, match="given is 16, the text has 16 tokens"):
        exposure(model, batch, given=16)


def test_exposure_of_a_model_that_counts() -> None:
    """It says i + 1 after i, sure as 50 nats; from one zero on it writes 0 1 2 3 0 1 2 3 0, all zeros being right."""
    model = cr.models.NeuralNGram(cr.models.NeuralNGramConfig(block_size=1, vocab_size=4))
    model.weight.data[0] = 50 * np.roll(np.eye(4), 1, axis=1)
    zeros = np.zeros((2, 9), int)
    found = exposure(model, (zeros, zeros), given=1)
    assert found.teacher_forced == pytest.approx(50)
    assert found.own_prefix == pytest.approx(50 * 6 / 8)  # right after the two threes
    assert found.own_text == pytest.approx(0, abs=1e-6)
