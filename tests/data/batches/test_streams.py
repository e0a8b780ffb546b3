"""Streams: rows that go on from step to step, every token once per pass, a function of the step alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import Streams
from chainrule.errors import ConfigError, DataError


@given(st.integers(1, 5), st.integers(1, 7), st.integers(1, 200), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_rows_go_on_and_no_token_is_seen_twice_in_a_pass(B: int, T: int, more: int, seed: int) -> None:
    ids = np.arange(B * T + more)
    streams = Streams(ids, batch_size=B, block_size=T, seed=seed)
    assert streams.tokens == B * T and streams.begins(0)
    for number in range(2):
        seen: list[int] = []
        last = None
        for step in range(number * streams.steps, (number + 1) * streams.steps):
            inputs, targets = streams.batch(step)
            assert inputs.shape == targets.shape == (B, T) and (targets == inputs + 1).all()
            assert streams.begins(step) == (last is None)
            assert last is None or (inputs[:, 0] == last).all()
            last = targets[:, -1]
            seen += inputs.ravel().tolist()
        assert len(set(seen)) == len(seen)
        assert len(ids) - len(seen) <= B * T + T  # what a pass leaves out


def test_a_batch_is_a_function_of_the_seed_and_the_step() -> None:
    ids = np.random.default_rng(0).integers(50, size=1000)
    one, two, other = (Streams(ids, batch_size=3, block_size=8, seed=s) for s in (1, 1, 2))
    for step in (70, 3, one.steps):
        assert np.array_equal(one.batch(step), two.batch(step))
    assert not np.array_equal(one.batch(0), other.batch(0))
    assert not np.array_equal(one.batch(0), one.batch(one.steps))  # the next pass is cut elsewhere


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(DataError, match="training text: 24 tokens, batch_size 3, block_size 8"):
        Streams(np.arange(24), batch_size=3, block_size=8)
    with pytest.raises(ConfigError, match="block_size is 0"):
        Streams(np.arange(24), batch_size=3, block_size=0)
