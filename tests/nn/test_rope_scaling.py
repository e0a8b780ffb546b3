"""Rotary positions for longer texts: which pairs are slowed down, and by how much."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.nn import LinearScaling, Llama3Scaling, frequencies, rope_scaling

sizes = st.floats(1, 100)
scalings = st.one_of(
    st.builds(LinearScaling, sizes),
    st.builds(
        lambda factor, low, more, length: Llama3Scaling(factor, low, low + more, length),
        sizes,
        sizes,
        sizes,
        st.integers(1, 100_000),
    ),
)


def test_every_pair_is_slowed_down_alike() -> None:
    plain = frequencies(8)
    np.testing.assert_array_equal(LinearScaling(4.0).slowed(plain), plain / 4)


def test_pairs_that_turn_often_stay_and_slow_ones_take_the_whole_factor() -> None:
    """In 100 positions these turn 50, 4, 2.5, 1 and 0.1 times; 2.5 is half way between 1 and 4."""
    plain = 2 * math.pi * np.array([0.5, 0.04, 0.025, 0.01, 0.001])
    got = Llama3Scaling(8.0, 1.0, 4.0, 100).slowed(plain)
    np.testing.assert_allclose(plain / got, [1, 1, 1 / (0.5 + 0.5 / 8), 8, 8])


@given(scalings, st.integers(1, 40))
def test_no_pair_turns_faster_nor_slower_than_the_factor_allows(scaling: Any, pairs: int) -> None:
    plain = frequencies(2 * pairs)
    slowed = scaling.slowed(plain)
    assert (slowed <= plain * (1 + 1e-12)).all() and (slowed >= plain / scaling.factor * (1 - 1e-12)).all()
    assert (np.diff(slowed) <= 0).all()  # the order of the pairs stays
    assert rope_scaling(asdict(scaling)) == scaling


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"rope_type is None \(must be one of linear, llama3\)"),
        ({"rope_type": "yarn", "factor": 2.0}, "rope_type is 'yarn'"),
        ({"rope_type": ["linear"], "factor": 2.0}, r"rope_type is \['linear'\]"),
        ({"rope_type": "linear"}, r"\(must be factor\)"),
        ({"rope_type": "linear", "factor": 2.0, "more": 1}, r"factor, more \(must be factor\)"),
        ({"rope_type": "linear", "factor": -1.0}, r"factor is -1.0 \(must be a positive number\)"),
        ({"rope_type": "linear", "factor": 0.5}, r"factor is 0.5 \(must be at least 1"),
        ({"rope_type": "linear", "factor": math.nan}, "factor is nan"),
        ({"rope_type": "linear", "factor": "2"}, "factor is '2'"),
        (3, "rope_scaling is 3"),
    ],
)
def test_what_is_no_scaling_is_refused(values: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rope_scaling(values)


def test_the_bounds_of_llama3_are_in_order() -> None:
    with pytest.raises(
        ConfigError, match=r"low_freq_factor is 4.0, high_freq_factor 4.0 \(must be greater\)"
    ):
        Llama3Scaling(8.0, 4.0, 4.0, 8192)
