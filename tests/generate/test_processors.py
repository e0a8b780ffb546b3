"""Processors: each keeps exactly what its definition says, in the documented order, and draws follow softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chainrule.errors import ChainruleError, ConfigError
from chainrule.generate import Sampling, choose, process
from chainrule.generate import processors as p
from chainrule.generate.sampling import with_defaults
from chainrule.random import generator
from chainrule.text import Conventions

Logits = np.ndarray


def normal(seed: int, n: int, scale: float) -> Logits:
    return (scale * np.random.default_rng(seed).normal(size=n)).astype(np.float32)


scores = st.one_of(
    arrays(np.float32, st.integers(1, 20), elements=st.floats(-30, 30, width=32)),
    arrays(np.float32, st.integers(1, 40), elements=st.sampled_from([0.0, 1.0, 2.5, -4.0])),  # ties
    arrays(np.float64, st.integers(1, 20), elements=st.floats(-9, 9)),
    st.builds(normal, st.integers(0, 99), st.integers(1, 6000), st.sampled_from([0.01, 1.0, 4.0])),
)
shares = st.floats(0, 1)
some = settings(max_examples=60)


def softmax(logits: Logits) -> Logits:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


def kept(logits: Logits) -> set[int]:
    return set(np.flatnonzero(logits > -np.inf).tolist())


def likeliest(logits: Logits) -> list[int]:
    return np.argsort(-logits, kind="stable").tolist()


@some
@given(scores, st.integers(1, 800))
def test_top_k_keeps_the_k_likeliest_and_changes_nothing_else(logits: Logits, k: int) -> None:
    left = p.top_k(logits, k)
    assert kept(left) == set(likeliest(logits)[:k])
    assert left.dtype == logits.dtype and all(left[i] == logits[i] for i in kept(left))


@some
@given(scores, shares)
def test_top_p_keeps_the_smallest_set_of_likeliest_with_that_mass(logits: Logits, share: float) -> None:
    chosen = kept(p.top_p(logits, share))
    assert chosen == set(likeliest(logits)[: len(chosen)])
    probability = softmax(logits)
    last = likeliest(logits)[len(chosen) - 1]
    mass = sum(probability[i] for i in chosen)
    assert mass >= share - 1e-6
    assert len(chosen) == 1 or mass - probability[last] < share + 1e-6


@some
@given(scores, st.floats(1e-6, 1))
def test_min_p_keeps_what_has_a_share_of_the_best(logits: Logits, share: float) -> None:
    chosen = kept(p.min_p(logits, share))
    ratio = softmax(logits) / softmax(logits).max()
    assert (
        set(np.flatnonzero(ratio >= share * 1.0001)) <= chosen <= set(np.flatnonzero(ratio >= share * 0.9999))
    )
    assert int(logits.argmax()) in chosen


@some
@given(scores, shares)
def test_typical_keeps_the_smallest_set_nearest_to_the_entropy(logits: Logits, share: float) -> None:
    chosen = kept(p.typical(logits, share))
    probability = softmax(logits)
    with np.errstate(divide="ignore"):
        surprise = -np.log(probability)
    entropy = probability[probability > 0] @ surprise[probability > 0]
    far = np.abs(surprise - entropy)
    assert (
        max(far[i] for i in chosen)
        <= min((far[i] for i in set(range(len(far))) - chosen), default=1e9) + 1e-3
    )
    mass = sum(probability[i] for i in chosen)
    assert mass >= share - 1e-6
    assert len(chosen) == 1 or mass - min(
        probability[i] for i in chosen if far[i] > max(far[j] for j in chosen) - 1e-3
    ) < (share + 1e-6)


@some
@given(scores, st.integers(0, 2**32))
def test_one_token_left_is_greedy(logits: Logits, seed: int) -> None:
    greedy = choose(logits, generator("test"), Sampling(temperature=0))
    assert greedy == likeliest(logits)[0]
    for option in ({"top_k": 1}, {"top_p": 0.0}, {"temperature": 1e-9, "top_k": 1}):
        assert (
            choose(logits, generator("test", seed=seed), Sampling(**{"temperature": 1.0} | option)) == greedy
        )


@some
@given(scores, st.floats(0, 1, exclude_max=True))
def test_a_draw_is_that_of_the_whole_vocabulary_sorted(logits: Logits, u: float) -> None:
    order = likeliest(logits)
    cumulative = np.cumsum(softmax(logits)[order])
    token = p.draw(logits, u)
    place = order.index(token)
    assert (cumulative[place - 1] if place else 0) <= u + 1e-6
    assert u <= cumulative[place] + 1e-6


@pytest.mark.parametrize("options", [{}, {"top_k": 5}, {"top_p": 0.8}, {"min_p": 0.1}, {"typical": 0.7}])
def test_draws_have_the_frequencies_of_what_is_left(options: dict[str, Any]) -> None:
    """Chi-square of 6,000 draws; the limit is the 99.9 % point by Wilson and Hilferty."""
    logits = np.random.default_rng(0).normal(size=12).astype(np.float32)
    sampling = Sampling(temperature=0.9, **options)
    n = 6_000
    u = generator("test", seed=5).random(n)
    left = process(logits, sampling)
    drawn = np.bincount([p.draw(left, x) for x in u], minlength=12)
    expected = n * softmax(left)
    assert set(np.flatnonzero(drawn)) <= kept(left)
    possible = expected > 0
    chi2 = ((drawn - expected)[possible] ** 2 / expected[possible]).sum()
    df = possible.sum() - 1
    assert chi2 < df * (1 - 2 / (9 * df) + 3.09 * np.sqrt(2 / (9 * df))) ** 3


def test_the_order_is_bias_penalties_temperature_truncations() -> None:
    logits = np.array([2.0, 1.0, -1.0, 0.5, 3.0, 0.0], np.float32)
    sampling = Sampling(
        temperature=0.5, top_k=4, top_p=0.95, min_p=0.01, typical=0.9, repetition_penalty=1.5,
        frequency_penalty=0.25, presence_penalty=0.125, logit_bias={4: -2.0, 3: 1.0},
    )  # fmt: skip
    step = p.bias(logits, {4: -2.0, 3: 1.0})
    assert step.tolist() == [2, 1, -1, 1.5, 1, 0]
    step = p.repetition(step, [0, 2, 3, 3], 1.5)
    np.testing.assert_allclose(step, [4 / 3, 1, -1.5, 1, 1, 0], rtol=1e-6)
    step = p.frequency(step, [3, 3], 0.25, 0.125)
    np.testing.assert_allclose(step, [4 / 3, 1, -1.5, 0.375, 1, 0], rtol=1e-6)
    step = p.temperature(step, 0.5)
    np.testing.assert_allclose(step, 2 * (np.array([4 / 3, 1, -1.5, 0.375, 1, 0]) - 4 / 3), atol=1e-6)
    step = p.typical(p.min_p(p.top_p(p.top_k(step, 4), 0.95), 0.01), 0.9)
    assert (process(logits, sampling, prompt=[0, 2], written=[3, 3]) == step).all()
    assert logits.tolist() == [2.0, 1.0, -1.0, 0.5, 3.0, 0.0]  # pure


def test_penalties_of_nothing_and_rewards() -> None:
    logits = np.array([1.0, 1.5], np.float32)
    assert (p.repetition(logits, [], 3.0) == logits).all() and (
        p.frequency(logits, [], 3.0, 1.0) == logits
    ).all()
    assert p.frequency(logits, [0], -1.0, 0.0).argmax() == 0  # below 0: more of the same


@pytest.mark.parametrize("T", [5e-324, 1e-9, 1e-3, 1e30])
def test_extreme_temperatures_are_greedy_or_even(T: float) -> None:
    logits = np.array([-3.0, 5.0, 5.5, 1.0], np.float32)
    drawn = {choose(logits, generator("test", i), Sampling(temperature=T)) for i in range(100)}
    assert drawn == ({0, 1, 2, 3} if T > 1 else {2})


def test_tokens_that_are_forbidden_are_never_drawn() -> None:
    logits = np.array([5.0, 0.0, -50.0], np.float32)
    sampling = Sampling(temperature=2.0, logit_bias={0: -np.inf, 1: -np.inf})
    assert {choose(logits, generator("test", i), sampling) for i in range(50)} == {2}
    with pytest.raises(ChainruleError, match="every token is ruled out"):
        process(logits, Sampling(logit_bias=dict.fromkeys(range(3), -np.inf)))


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_broken_scores_are_noticed(broken: float) -> None:
    for temperature in (0.0, 1.0):
        with pytest.raises(ChainruleError, match="not finite"):
            process(np.array([0.0, broken]), Sampling(temperature=temperature))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": -1}, "max_new_tokens is -1"),
        ({"max_new_tokens": 2.5}, "max_new_tokens is 2.5"),
        ({"max_new_tokens": 10**9 + 1}, "max_new_tokens is 1000000001"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_p": -0.1}, "top_p is -0.1"),
        ({"top_p": float("nan")}, "top_p is nan"),
        ({"min_p": 2}, "min_p is 2"),
        ({"typical": 1.1}, "typical is 1.1"),
        ({"repetition_penalty": 0}, "repetition_penalty is 0"),
        ({"repetition_penalty": -1.0}, "repetition_penalty is -1.0"),
        ({"repetition_penalty": 1e7}, "repetition_penalty is 1e\\+07 .must be from 1e-6 to 1e6"),
        ({"repetition_penalty": 1e-7}, "repetition_penalty is 1e-07"),
        ({"repetition_penalty": float("nan")}, "repetition_penalty is nan"),
        ({"frequency_penalty": float("inf")}, "frequency_penalty is inf"),
        ({"frequency_penalty": -1e7}, "frequency_penalty is -1e\\+07"),
        ({"presence_penalty": float("nan")}, "presence_penalty is nan"),
        ({"logit_bias": {3: float("nan")}}, "logit_bias of token 3 is nan"),
        ({"logit_bias": {3: float("inf")}}, "logit_bias of token 3 is inf"),
        ({"logit_bias": {3: 1e308}}, "logit_bias of token 3 is 1e\\+308 .must be from -1e6 to 1e6, or -inf"),
        ({"stop": ("",)}, "stop is"),
        ({"stop": "abc"}, "stop is 'abc'"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_impossible_options_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sampling(**options)


@pytest.mark.parametrize("name", ["logit_bias", "stop_tokens"])
def test_tokens_of_another_vocabulary_are_refused(name: str) -> None:
    for token in (-1, 10):
        value: Any = {token: 1.0} if name == "logit_bias" else (token,)
        with pytest.raises(ConfigError, match=rf"{name} has token {token} \(must be from 0 to 9\)"):
            Sampling(**{name: value}).check(10)


def test_the_defaults_of_a_model_give_way_to_what_is_given() -> None:
    model = Conventions(eos=(7, 8), generation={"temperature": 0.6, "top_k": 20})
    assert with_defaults(Sampling(), model) == Sampling(temperature=0.6, top_k=20, stop_tokens=(7, 8))
    given = Sampling(temperature=0.8, stop_tokens=(3,))
    own = with_defaults(given, model, {"temperature", "stop_tokens"})
    assert own == Sampling(temperature=0.8, top_k=20, stop_tokens=(3,))
    with pytest.raises(ConfigError, match="top_p is 7"):
        with_defaults(Sampling(), Conventions(generation={"top_p": 7.0}))


@pytest.mark.parametrize(("share", "kept"), [(0.25, 1), (0.5, 2), (0.75, 3), (0.5000001, 3), (0.49, 2)])
def test_top_p_stops_where_the_mass_is_reached_exactly(share: float, kept: int) -> None:
    """Four tokens of a quarter each: two of them are a half, and no third is needed."""
    assert np.isfinite(p.top_p(np.zeros(4), share)).sum() == kept


def test_options_at_the_edge_of_what_is_possible() -> None:
    assert Sampling(max_new_tokens=10**9).max_new_tokens == 10**9
    for name, edge in {"top_k": 1, "top_p": 0.0, "min_p": 1.0, "typical": 1.0, "temperature": 0.0}.items():
        assert getattr(Sampling(**{name: edge}), name) == edge
