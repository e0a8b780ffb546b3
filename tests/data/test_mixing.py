"""Mixtures of domains: exact shares, each domain in its own epochs, any step at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, Batches, ConversationBatches, DocumentBatches, Encoded, Mixture, balanced
from chainrule.data.batches.conversations import Chats
from chainrule.data.batches.packed import Packed
from chainrule.data.mixing import PERIOD
from chainrule.errors import ConfigError


def source(id: int, block_size: int = 2) -> Batches:
    return Batches(np.full(50, id), batch_size=1, block_size=block_size)


def test_shares_are_within_a_percent_after_a_thousand_draws() -> None:
    weights = {"web": 0.617, "books": 0.25, "code": 0.133}
    mixture = Mixture({name: source(i) for i, name in enumerate(weights)}, weights, draws=100, seed=3)
    drawn = Counter(domain for step in range(10) for domain, _ in mixture.schedule(step))
    for i, weight in enumerate(weights.values()):
        assert drawn[i] / PERIOD == pytest.approx(weight, abs=0.001)
    inputs, _ = mixture.batch(4)
    assert set(inputs[:, 0].tolist()) == {0, 1, 2}  # mixed within a batch


@settings(max_examples=20)
@given(
    weights=st.lists(st.floats(0.05, 1), min_size=1, max_size=5),
    draws=st.integers(20, 400),
    seed=st.integers(0, 2**64 - 1),
)
def test_each_domain_goes_through_its_own_steps_once(weights: list[float], draws: int, seed: int) -> None:
    names = [str(i) for i in range(len(weights))]
    mixture = Mixture(
        {name: source(0) for name in names}, dict(zip(names, weights, strict=True)), draws=draws, seed=seed
    )
    steps = -(-2 * PERIOD // draws)
    drawn = [pair for step in range(steps) for pair in mixture.schedule(step)][: 2 * PERIOD]
    for domain, quota in enumerate(mixture.quotas):
        assert sorted(n for d, n in drawn if d == domain) == list(range(2 * quota))


def test_rows_of_unequal_length_are_padded() -> None:
    documents = DocumentBatches(Encoded.of([[5, 6, 7, 8]]), batch_size=1, block_size=9)
    mixture = Mixture({"a": source(1), "b": documents}, {"a": 1, "b": 1}, draws=20)
    inputs, targets = mixture.batch(0)
    assert inputs.shape == targets.shape == (20, 3)
    short = inputs[:, 0] == 1
    assert short.any() and (targets[short, 2] == IGNORE).all() and (targets[~short] == [6, 7, 8]).all()
    assert mixture.block_size == 9 and mixture.tokens == 50


def test_small_domains_gain_when_the_power_is_small() -> None:
    sizes = {"large": 100, "small": 1}
    assert balanced(sizes, 1)["small"] == pytest.approx(1 / 101)
    assert balanced(sizes, 0.5)["small"] == pytest.approx(1 / 11)
    assert balanced(sizes, 0) == {"large": 0.5, "small": 0.5}


def test_impossible_mixtures_are_refused() -> None:
    domains = {"a": source(1), "b": source(2)}
    for weights, message in (
        ({"a": 1.0}, r"weights \['a'\] \(must name the same\)"),
        ({"a": 1.0, "b": 0.0}, "must be positive numbers"),
        ({"a": 1.0, "b": float("inf")}, "must be positive numbers"),
        ({"a": 1.0, "b": 1e-9}, "fraction of 'b' is below 1/1000"),
    ):
        with pytest.raises(ConfigError, match=message):
            Mixture(domains, weights, draws=1)
    with pytest.raises(ConfigError, match="draws 0"):
        Mixture(domains, {"a": 1, "b": 1}, draws=0)


@pytest.mark.requirement("R-382")
def test_conversations_and_plain_text_in_the_proportions_of_their_sources() -> None:
    """10,000, 100,000 and 50,000: within a percent over an epoch of draws."""
    chats = Chats.of([(np.array([1, 2, 3]), np.array([False, True, True]))] * 4)
    domains = {
        "written": ConversationBatches(chats, batch_size=1, block_size=4),
        "reformatted": source(5, block_size=3),
        "sampled": source(6, block_size=3),
    }
    weights = {"written": 10_000, "reformatted": 100_000, "sampled": 50_000}
    mixture = Mixture(domains, weights, draws=PERIOD)
    inputs, targets = mixture.batch(0)
    assert isinstance(inputs, Packed) and inputs.ids.shape == inputs.segments.shape == targets.shape == (
        PERIOD,
        4,
    )
    for id, weight in zip((1, 5, 6), weights.values(), strict=True):
        assert (inputs.ids[:, 0] == id).mean() == pytest.approx(weight / 160_000, rel=0.01)
    plain, packed = inputs.ids[:, 0] == 5, inputs.ids[:, 0] == 1
    assert inputs.segments[plain].tolist() == [[1, 1, 1, 0]] * plain.sum()
    assert inputs.segments[packed].tolist() == [[1, 1, 2, 2]] * packed.sum()  # two conversations
    assert (targets[plain][:, 3] == IGNORE).all()
