"""Batches: pure functions of (seed, step), cut from the training part alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.data import Batches, split, windows
from chainrule.errors import ConfigError, DataError
from tests.vectors import vector

IDS = np.arange(1000)  # each token is its own position


@pytest.mark.requirement("R-465")
@given(B=st.integers(1, 5), T=st.integers(1, 999), step=st.integers(0, 10**9), seed=st.integers(0, 2**64 - 1))
def test_a_batch_is_windows_and_the_same_shifted_by_one(B: int, T: int, step: int, seed: int) -> None:
    inputs, targets = Batches(IDS, batch_size=B, block_size=T, seed=seed).batch(step)
    assert inputs.shape == targets.shape == (B, T)
    assert (targets[:, :-1] == inputs[:, 1:]).all()
    assert (np.diff(inputs, axis=1) == 1).all() and (targets == inputs + 1).all()


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    batches = Batches(IDS, batch_size=4, block_size=8, seed=1)
    later, earlier = batches.batch(812), batches.batch(3)
    again = Batches(IDS, batch_size=4, block_size=8, seed=1)
    assert (again.batch(3)[0] == earlier[0]).all() and (again.batch(812)[0] == later[0]).all()
    assert (later[0] != earlier[0]).any()
    assert (Batches(IDS, batch_size=4, block_size=8, seed=2).batch(3)[0] != earlier[0]).any()


def test_every_window_can_be_drawn_the_first_and_the_last_too() -> None:
    batches = Batches(IDS[:10], batch_size=8, block_size=4)
    starts = {int(row[0]) for step in range(50) for row in batches.batch(step)[0]}
    assert starts == set(range(6))


@pytest.mark.requirement("R-364", "R-272")
def test_one_window_holds_an_example_per_position() -> None:
    v = vector("004-9.10.1-shift")
    tokens = v.inputs["tokens"]
    inputs, targets = Batches(np.arange(6), batch_size=1, block_size=5).batch(0)
    v.check({"input": [tokens[i] for i in inputs[0]], "target": [tokens[i] for i in targets[0]]})

    v = vector("002-nested-contexts")
    ids = np.array(v.inputs["seq"])
    inputs, targets = Batches(ids, batch_size=1, block_size=len(ids) - 1).batch(0)
    v.check([[inputs[0, : t + 1], targets[0, t]] for t in range(inputs.shape[1])])


@pytest.mark.requirement("R-463")
def test_training_never_sees_the_validation_part() -> None:
    train, validation = split(IDS, 0.1)
    assert (np.concatenate([train, validation]) == IDS).all()
    assert len(validation) == 100
    batches = Batches(train, batch_size=16, block_size=32)
    seen = {int(i) for step in range(200) for part in batches.batch(step) for i in part.reshape(-1)}
    assert seen.isdisjoint(validation.tolist()) and len(seen) == len(train)


def test_evaluation_windows_cover_the_text_once() -> None:
    found = list(windows(IDS[:101], batch_size=4, block_size=10, limit=100))
    assert [len(inputs) for inputs, _ in found] == [4, 4, 2]
    assert (np.concatenate([targets.reshape(-1) for _, targets in found]) == IDS[1:101]).all()


def test_a_limit_spreads_the_windows_evenly() -> None:
    ((inputs, _),) = windows(IDS, batch_size=8, block_size=10, limit=3)
    assert inputs[:, 0].tolist() == [0, 490, 980]


def test_text_shorter_than_the_context_is_refused_with_both_numbers() -> None:
    with pytest.raises(DataError, match="training text: 8 tokens, block_size 8"):
        Batches(IDS[:8], batch_size=1, block_size=8)
    with pytest.raises(DataError, match="validation text: 5 tokens, block_size 8"):
        next(windows(IDS[:5], batch_size=1, block_size=8, limit=1))


def test_sizes_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="batch_size is 0"):
        Batches(IDS, batch_size=0, block_size=8)
    with pytest.raises(ConfigError, match="block_size is 0"):
        Batches(IDS, batch_size=1, block_size=0)
