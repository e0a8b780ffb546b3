"""Distributions, averages, spread, the bell curve and belief."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations import probability as pr
from chainrule.random import generator
from tests.vectors import vector

logits = hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-20, 20))
FACES = np.arange(1, 7)


@pytest.mark.requirement("R-061")
def test_valid_distributions() -> None:
    v = vector("004-3.1-die")
    die = pr.uniform(v.inputs["vocab_size"])
    v.check(die[0])
    assert pr.is_distribution(die) and len(die) == 6
    table = vector("004-13.9.1.5-table-sums")
    table.check(pr.distribution(table.inputs["v"]).sum())
    assert not pr.is_distribution([0.5, 0.6])
    assert not pr.is_distribution([1.5, -0.5])
    assert not pr.is_distribution([])
    assert not pr.is_distribution([math.nan, 1.0])
    assert pr.is_distribution(np.full(7, 1 / 7, dtype=np.float32))
    assert pr.is_distribution([[0.2, 0.8], [1.0, 0.0]]) and not pr.is_distribution([[0.2, 0.8], [1.0, 0.1]])


@pytest.mark.requirement("R-061", "R-067")
@given(logits)
def test_softmax_is_always_a_distribution(z: np.ndarray) -> None:
    p = pr.softmax(z)
    assert pr.is_distribution(p)
    np.testing.assert_allclose(pr.softmax(z + 1000), p, rtol=1e-9)
    assert p[z.argmax()] == p.max()


@pytest.mark.requirement("R-062")
def test_interval_probability_by_integration() -> None:
    within_one = pr.interval_probability(pr.normal_density, -1, 1)
    assert within_one == pytest.approx(0.682689, abs=1e-6)
    assert within_one == pytest.approx(math.erf(1 / math.sqrt(2)), abs=1e-12)
    assert pr.interval_probability(pr.normal_density, -12, 12) == pytest.approx(1, abs=1e-9)
    assert pr.interval_probability(pr.normal_density, 0.5, 0.5) == 0  # one point has no probability
    shifted = pr.interval_probability(lambda x: pr.normal_density(x, 3, 2), 1, 5)
    assert shifted == pytest.approx(0.682689, abs=1e-6)
    assert pr.interval_probability(lambda x: np.full_like(x, 0.25), 0, 3) == pytest.approx(0.75)


@pytest.mark.requirement("R-062", "R-063")
@pytest.mark.parametrize("name", ["fair-die", "loaded-die", "lm-mean"])
def test_expectations(name: str) -> None:
    v = vector(f"004-3.5-{name}")
    v.check(pr.expectation(v.inputs["values"], v.inputs["p"]))


@pytest.mark.requirement("R-063")
def test_sample_mean_is_an_expectation() -> None:
    v = vector("004-3.5-sample-mean")
    x = v.inputs["x"]
    v.check(pr.expectation(x, pr.uniform(len(x))))


@pytest.mark.requirement("R-063")
@given(hnp.arrays(np.float64, (2, 6), elements=st.floats(-10, 10)), st.floats(-5, 5), st.floats(-5, 5))
def test_expectation_is_linear_even_for_dependent_variables(xy: np.ndarray, a: float, b: float) -> None:
    p = pr.softmax(xy[0])  # one draw decides both values, so they depend on each other
    x, y = xy
    together = pr.expectation(a * x + b * y, p)
    assert together == pytest.approx(a * pr.expectation(x, p) + b * pr.expectation(y, p), abs=1e-9)


@pytest.mark.requirement("R-064")
@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_variances(name: str) -> None:
    v = vector(f"004-3.6-variance-{name}")
    x, p = v.inputs["values"], v.inputs["p"]
    v.check({"mean": pr.expectation(x, p), "var": pr.variance(x, p)})


@pytest.mark.requirement("R-064")
def test_why_the_deviation_is_squared() -> None:
    v = vector("004-3.6-spread-attempts")
    v.check(list(pr.spread_attempts(v.inputs["values"], pr.uniform(2))))


@pytest.mark.requirement("R-064")
def test_shortcut_and_standard_deviation() -> None:
    v = vector("004-3.6-shortcut")
    x, p = np.array(v.inputs["values"]), v.inputs["p"]
    got = {"EX2": pr.expectation(x**2, p), "var": pr.variance_shortcut(x, p)}
    v.check(got | {"std": pr.standard_deviation(x, p)})
    for p in (pr.uniform(6), pr.softmax(FACES)):
        assert pr.variance_shortcut(FACES, p) == pytest.approx(pr.variance(FACES, p), rel=1e-12)


@pytest.mark.requirement("R-065")
def test_normal_samples_standardize() -> None:
    x = pr.sample_normal(100_000, 3.0, 2.0, seed=0)
    z = pr.standardize(x, 3.0, 2.0)
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02
    inside = np.mean(np.abs(z) <= 1)
    assert inside == pytest.approx(pr.interval_probability(pr.normal_density, -1, 1), abs=0.01)


@pytest.mark.requirement("R-065")
def test_normal_density() -> None:
    assert pr.normal_density(3.0, 3.0, 2.0) == pytest.approx(1 / (2 * math.sqrt(2 * math.pi)), rel=1e-15)
    x = np.linspace(-4, 4, 9)
    np.testing.assert_allclose(pr.normal_density(x), pr.normal_density(-x))
    np.testing.assert_allclose(pr.normal_density(x, 1, 2), pr.normal_density((x - 1) / 2) / 2, rtol=1e-12)


@pytest.mark.requirement("R-066")
def test_sums_of_dice_become_a_bell() -> None:
    v = vector("004-3.7-clt")
    dice, mean = v.inputs["factors"]
    assert pr.expectation(FACES, pr.uniform(6)) == mean
    found = pr.central_limit(dice=dice, trials=10_000, seed=0)
    v.check(found.expected_mean)
    assert len(found.sums) == 10_000
    error = found.expected_std / math.sqrt(len(found.sums))
    assert abs(found.sums.mean() - found.expected_mean) < 3 * error
    assert found.sums.std() == pytest.approx(found.expected_std, rel=0.03)
    middles = (found.edges[:-1] + found.edges[1:]) / 2
    np.testing.assert_allclose(found.density, pr.normal_density(middles), atol=0.03)
    assert (found.density * np.diff(found.edges)).sum() == pytest.approx(1)


@pytest.mark.requirement("R-066")
def test_one_die_is_no_bell() -> None:
    found = pr.central_limit(dice=1, trials=10_000, seed=0)
    middles = (found.edges[:-1] + found.edges[1:]) / 2
    assert np.abs(found.density - pr.normal_density(middles)).max() > 0.1


@pytest.mark.requirement("R-067")
def test_worked_softmax() -> None:
    z = np.array(vector("004-3.8-softmax").inputs["logits"])
    p = pr.softmax(z)
    vector("004-3.8-softmax").check(p)
    largest = math.exp(z.max()) / p.max()  # the denominator, read back from the result
    vector("004-3.8-softmax-sum").check(largest)
    vector("004-3.8-softmax-exp").check(p * largest)


@pytest.mark.requirement("R-067")
def test_sampled_frequencies_follow_the_distribution() -> None:
    p = pr.softmax([2.0, 1.0, 0.1, -1.0])
    n = 100_000
    draws = pr.sample_categorical(p, n, seed=0)
    counts = np.bincount(draws, minlength=4)
    assert np.all(np.abs(counts - n * p) < 4 * np.sqrt(n * p * (1 - p)))
    np.testing.assert_array_equal(draws[:100], pr.sample_categorical(p, 100, seed=0))
    assert not np.array_equal(draws[:100], pr.sample_categorical(p, 100, seed=1))


@pytest.mark.requirement("R-067")
def test_impossible_outcomes_are_never_sampled() -> None:
    draws = pr.sample_categorical([0.0, 0.5, 0.0, 0.5, 0.0], 20_000, seed=0)
    assert set(draws.tolist()) == {1, 3}


@pytest.mark.requirement("R-072")
def test_a_hint_changes_the_belief() -> None:
    v = vector("004-3.12-conditional")
    die = range(1, v.inputs["die"] + 1)
    prior = pr.chance(lambda x: x % 2 == 0, die)
    both = pr.chance(lambda x: x % 2 == 0 and x >= 4, die)
    v.check({"prior": prior, "posterior": pr.conditional(both, pr.chance(lambda x: x >= 4, die))})


@pytest.mark.requirement("R-072")
def test_bayes_agrees_with_the_definition() -> None:
    prior, likelihood = np.array([0.01, 0.99]), np.array([0.95, 0.05])  # ill or well; the test says ill
    posterior = pr.bayes(prior, likelihood)
    assert posterior[0] == pytest.approx(pr.conditional(0.01 * 0.95, 0.01 * 0.95 + 0.99 * 0.05), rel=1e-12)
    twice = pr.bayes(posterior, likelihood)
    np.testing.assert_allclose(twice, pr.bayes(prior, likelihood**2), rtol=1e-12)  # belief as the next prior
    np.testing.assert_allclose(pr.bayes(prior, [0.4, 0.4]), prior, rtol=1e-12)  # no news


@pytest.mark.requirement("R-073")
def test_chain_rule_of_probability() -> None:
    v = vector("004-3.12-chain")
    v.check(pr.sequence_probability(v.inputs["conditionals"]))
    assert pr.sequence_probability([0.5, 0.0, 0.9]) == 0
    table = np.random.default_rng(0).dirichlet(np.ones(24)).reshape(2, 3, 4)  # P(a, b, c)
    a, b, c = 1, 2, 3
    conditionals = [
        table[a].sum(),
        pr.conditional(table[a, b].sum(), table[a].sum()),
        pr.conditional(table[a, b, c], table[a, b].sum()),
    ]
    assert pr.sequence_probability(conditionals) == pytest.approx(table[a, b, c], rel=1e-12)


@pytest.mark.requirement("R-074")
def test_independence() -> None:
    v = vector("004-3.13-independence")
    coins = np.full((2, 2), 0.25)
    cards = np.array([[0.25, 0.25], [0.0, 0.5]])  # red or black, heart or not
    red, heart = cards[0].sum(), cards[:, 0].sum()
    both_heads = coins[0].sum() * coins[:, 0].sum()
    v.check({"HH": both_heads, "red*heart": red * heart, "red_and_heart": cards[0, 0]})
    assert pr.are_independent(coins) and not pr.are_independent(cards)


@pytest.mark.requirement("R-074")
@given(logits, logits)
def test_an_outer_product_is_independent(a: np.ndarray, b: np.ndarray) -> None:
    assert pr.are_independent(np.outer(pr.softmax(a), pr.softmax(b)))


@pytest.mark.requirement("R-075")
def test_variances_of_independent_terms_add() -> None:
    rng = generator("weighted sum", seed=0)
    n, terms = 100_000, 8
    weights = rng.normal(size=terms)
    stds = rng.uniform(0.5, 2, size=terms)
    x = rng.normal(0, stds, size=(n, terms))
    total = x @ weights
    expected = pr.variance_of_sum(stds**2, weights)
    assert expected == pytest.approx(pr.variance_of_sum((weights * stds) ** 2), rel=1e-12)
    standard_error = expected * math.sqrt(2 / n)  # of the sample variance of a normal variable
    assert abs(total.var() - expected) < 3 * standard_error

    dependent = (x[:, :1] * weights).sum(axis=1)  # the same x in every term
    if_independent = pr.variance_of_sum(np.full(terms, stds[0] ** 2), weights)
    assert dependent.var() == pytest.approx(stds[0] ** 2 * weights.sum() ** 2, rel=0.02)
    assert abs(dependent.var() - if_independent) > 0.2 * if_independent


@pytest.mark.parametrize(
    ("error", "bad", "message"),
    [
        (ConfigError, lambda: pr.distribution([0.5, 0.6]), r"sum to 1.1 \(must be 1\)"),
        (ConfigError, lambda: pr.expectation([1, 2], [1.5, -0.5]), "expectation: smallest probability -0.5"),
        (ShapeError, lambda: pr.distribution(1.0), r"got shape \(\)"),
        (ShapeError, lambda: pr.expectation([1, 2, 3], [0.5, 0.5]), r"shapes \(3,\) and \(2,\)"),
        (ShapeError, lambda: pr.sample_categorical([[1.0]], 3), "must be one distribution"),
        (ConfigError, lambda: pr.uniform(0), "uniform: 0 outcomes"),
        (ConfigError, lambda: pr.standardize([1.0], 0, 0), "standard deviation 0"),
        (ConfigError, lambda: pr.interval_probability(pr.normal_density, 1, 0), "from 1 to 0"),
        (ConfigError, lambda: pr.interval_probability(pr.normal_density, 0, math.inf), "must be finite"),
        (ConfigError, lambda: pr.interval_probability(pr.normal_density, 0, 1, 3), "3 pieces"),
        (ConfigError, lambda: pr.sample_normal(3, 0.0, -1.0), "standard deviation -1.0"),
        (ConfigError, lambda: pr.central_limit(dice=0), "0 dice"),
        (ConfigError, lambda: pr.chance(lambda x: x, []), "0 outcomes"),
        (ConfigError, lambda: pr.conditional(0.1, 0.0), r"P\(B\) = 0.0"),
        (ConfigError, lambda: pr.conditional(0.3, 0.2), r"P\(A and B\) = 0.3"),
        (ConfigError, lambda: pr.bayes([0.5, 0.5], [0.0, 0.0]), "no hypothesis"),
        (ConfigError, lambda: pr.bayes([0.5, 0.5], [0.0, 2.0]), "from 0.0 to 2.0"),
        (ConfigError, lambda: pr.sequence_probability([0.5, 1.5]), "from 0.5 to 1.5"),
        (ConfigError, lambda: pr.are_independent([[0.5, 0.6]]), "sum to 1.1"),
        (ShapeError, lambda: pr.are_independent([0.5, 0.5]), "must be a table"),
        (ConfigError, lambda: pr.variance_of_sum([-1.0]), "smallest variance -1.0"),
    ],
)
def test_bad_input(error: type[Exception], bad: Callable[[], object], message: str) -> None:
    with pytest.raises(error, match=message):
        bad()
