from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule import nn
from chainrule.autograd import Tensor
from chainrule.errors import ConfigError, ShapeError
from chainrule.nn import DistanceBias, frequencies, shift_matrix, sinusoidal, wavelengths
from chainrule.nn.positions import distance_buckets
from tests.vectors import vector


@pytest.mark.requirement("R-307")
@pytest.mark.parametrize(
    "id",
    [
        "004-11.3-pe-0",
        "004-11.3-pe-1",
        "004-11.3-pe-2",
        "004-11.3-pe-3",
        "004-11.3.6-pe-5",
        "004-11.3.6-pe-6",
    ],
)
def test_vectors(id: str) -> None:
    v = vector(id)
    row = sinusoidal(10, v.inputs["d"], v.inputs["base"])[v.inputs["t"]]
    v.check(row[v.inputs.get("dims", slice(None))])


@pytest.mark.requirement("R-308")
def test_the_formula_that_counts_from_1_gives_the_same_matrix() -> None:
    n, d = 50, 16
    P = np.empty((n, d))
    for i in range(1, n + 1):
        for j in range(1, d + 1):
            exponent = (j - 1 if j % 2 else j - 2) / d
            P[i - 1, j - 1] = (math.sin if j % 2 else math.cos)((i - 1) / 10000**exponent)
    np.testing.assert_allclose(sinusoidal(n, d), P, rtol=0, atol=1e-13)


@pytest.mark.requirement("R-309")
@pytest.mark.parametrize("layer", [nn.SinusoidalPositions(8), nn.LearnedPositions(6, 8)])
def test_positions_are_added(layer: Any) -> None:
    lookup = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
    P = (
        layer.weight.data[:5]
        if isinstance(layer, nn.LearnedPositions)
        else sinusoidal(5, 8).astype(np.float32)
    )
    X0 = layer(lookup).numpy()
    assert X0.shape == lookup.shape
    np.testing.assert_array_equal(X0, lookup + P)
    np.testing.assert_array_equal(layer(np.zeros_like(lookup)).numpy()[0], P)


@pytest.mark.requirement("R-311")
def test_frequencies_and_wavelengths() -> None:
    v = vector("004-11.3-frequencies")
    v.check(frequencies(v.inputs["d"], v.inputs["base"]))
    v = vector("004-11.3.1-wavelengths")
    v.check(wavelengths(v.inputs["d"], v.inputs["base"]))


@pytest.mark.requirement("R-312")
def test_bounded_unique_and_smooth() -> None:
    P = sinusoidal(5000, 64)
    assert np.abs(P).max() <= 1
    nearest = np.inf
    for start in range(0, 5000, 500):
        rows = P[start : start + 500]
        squared = 2 * 32 - 2 * rows @ P.T  # every row has the squared norm d/2
        squared[np.arange(len(rows)), start + np.arange(len(rows))] = np.inf
        nearest = min(nearest, squared.min())
    assert math.sqrt(nearest) > 0.5
    steps = (np.diff(P, axis=0) ** 2).sum(axis=1)
    np.testing.assert_allclose(steps, steps[0], rtol=0, atol=1e-9)


@pytest.mark.requirement("R-314")
def test_a_shift_is_one_rotation() -> None:
    v = vector("der-pe-rotation")
    d, k = v.inputs["d"], v.inputs["k"]
    P = sinusoidal(10, d)
    v.check({"R": shift_matrix(k, d), "p5": P[5], "p8": P[8]})


@pytest.mark.requirement("R-314")
@given(
    st.integers(-50, 50), st.integers(1, 20), st.sampled_from(["interleaved", "half"]), st.floats(2.0, 1e5)
)
def test_the_rotation_does_not_depend_on_the_position(k: int, pairs: int, layout: str, base: float) -> None:
    d = 2 * pairs
    P = sinusoidal(200, d, base, layout)
    R = shift_matrix(k, d, base, layout)
    np.testing.assert_allclose(P[60:120] @ R.T, P[60 + k : 120 + k], atol=1e-11)
    np.testing.assert_allclose(R @ R.T, np.eye(d), atol=1e-12)


@pytest.mark.requirement("R-315")
def test_the_effect_of_the_base() -> None:
    v = vector("004-11.3.5-slowest")
    v.check(wavelengths(v.inputs["d"], v.inputs["base"])[-1])
    v = vector("004-11.3.5-fastest")
    v.check(wavelengths(v.inputs["d"], v.inputs["base"])[0])
    v = vector("004-11.3.5-base100")
    limit = 2 * math.pi * v.inputs["base"]
    v.check({"wavelength": limit, "cycles": v.inputs["n"] / limit})
    slowest = {base: wavelengths(512, base)[-1] for base in (100, 10000, 100000)}
    assert slowest[100] < limit < slowest[10000] < slowest[100000]
    # the slowest pair over 2048 positions: several turns, part of a turn, next to nothing
    assert 2048 / slowest[100] > 3
    moved = {base: np.ptp(sinusoidal(2048, 512, base)[:, -1]) for base in slowest}
    assert moved[100] == pytest.approx(2.0, abs=1e-3)
    assert moved[100000] < moved[10000] < 0.1


@pytest.mark.requirement("R-320")
def test_neighbors_differ_in_fast_dimensions_and_distant_ones_in_slow_ones() -> None:
    v = vector("004-11.3.6-diff")
    P = sinusoidal(600, v.inputs["d"])
    a, b = v.inputs["t"]
    v.check(np.abs(P[b] - P[a])[v.inputs["dims"]])
    v = vector("004-11.3.1-pos5-vs-50")
    a, b = v.inputs["t"]
    v.check(np.abs(P[b] - P[a])[v.inputs["dims"]].max())
    near, far = np.abs(P[6] - P[5]), np.abs(P[505] - P[5])
    assert near[:2].min() > 10 * near[4:].max()
    assert far[4:6].max() > 10 * near[4:6].max()


@pytest.mark.requirement("R-317")
def test_any_length_without_training() -> None:
    layer = nn.SinusoidalPositions(16)
    far = layer(np.zeros((1, 2, 16), np.float32), start=100_000).numpy()[0]
    assert np.isfinite(far).all() and np.abs(far).max() <= 1
    np.testing.assert_allclose(far, sinusoidal(2, 16, start=100_000), atol=1e-6)
    np.testing.assert_array_equal(far, layer(np.zeros((1, 100_002, 16), np.float32)).numpy()[0, -2:])


@pytest.mark.requirement("R-316")
def test_the_learned_table_refuses_positions_beyond_its_end() -> None:
    layer = nn.LearnedPositions(6, 4)
    assert layer(np.zeros((1, 2, 4), np.float32), start=4).shape == (1, 2, 4)
    for T, start in ((7, 0), (1, 6), (2, 5), (1, -1)):
        message = rf"LearnedPositions: positions {start} to {start + T - 1}, the table has 0 to 5"
        with pytest.raises(ShapeError, match=message):
            layer(np.zeros((1, T, 4), np.float32), start=start)


@pytest.mark.requirement("R-316")
def test_row_t_gets_the_summed_gradient_of_position_t() -> None:
    layer = nn.LearnedPositions(6, 4).to(np.float64)
    weights = np.random.default_rng(1).normal(size=(3, 5, 4))
    (layer(Tensor(np.zeros((3, 5, 4)))) * weights).sum().backward()
    np.testing.assert_allclose(layer.weight.grad[:5], weights.sum(axis=0))
    assert not layer.weight.grad[5].any()


def test_positions_before_the_first_are_refused() -> None:
    with pytest.raises(ShapeError, match="SinusoidalPositions: start is -1"):
        nn.SinusoidalPositions(4)(np.zeros((1, 2, 4), np.float32), start=-1)


def test_layouts_hold_the_same_numbers() -> None:
    mixed, half = sinusoidal(20, 8), sinusoidal(20, 8, layout="half")
    np.testing.assert_array_equal(half[:, :4], mixed[:, 0::2])
    np.testing.assert_array_equal(half[:, 4:], mixed[:, 1::2])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_an_odd_size_drops_the_last_cosine(layout: str) -> None:
    P = sinusoidal(9, 5, layout=layout)
    angles = np.arange(9)[:, None] * 10000.0 ** (-np.array([0, 2, 4]) / 5)
    sines = P[:, 0::2] if layout == "interleaved" else P[:, :3]
    cosines = P[:, 1::2] if layout == "interleaved" else P[:, 3:]
    np.testing.assert_allclose(sines, np.sin(angles))
    np.testing.assert_allclose(cosines, np.cos(angles[:, :2]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal(3, 0), "positions: size 0"),
        (lambda: sinusoidal(3, 4, base=-1.0), r"base -1\.0"),
        (lambda: sinusoidal(3, 4, layout="other"), "layout 'other'"),
        (lambda: shift_matrix(1, 5), r"shift_matrix: size 5 \(must be even"),
    ],
)
def test_bad_settings_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()


def test_near_distances_have_buckets_of_their_own_and_far_ones_share() -> None:
    before = distance_buckets(-np.arange(300), 32)
    assert before[:8].tolist() == list(range(8)) and before[-1] == 15 == before.max()
    assert (np.diff(before) >= 0).all() and len(set(before.tolist())) == 16
    after = distance_buckets(np.arange(1, 300), 32)
    assert (after == before[1:] + 16).all()
    seen = distance_buckets(np.arange(-300, 5), 32, causal=True)
    assert seen[-5:].tolist() == [0] * 5 and seen[0] == 31 and seen[-21:-5].tolist() == list(range(16, 0, -1))


def test_a_bias_for_each_head_and_distance() -> None:
    layer = DistanceBias(8, 3, longest=5, farthest=6)
    found = layer()
    assert found.shape == (3, 9)
    places = distance_buckets(np.arange(-4, 5), 8, farthest=6)
    np.testing.assert_array_equal(found.numpy(), layer.weight.data[places].T)
    found.sum().backward()
    assert layer.weight.grad[:, 0].tolist() == np.bincount(places, minlength=8).tolist()


@pytest.mark.parametrize(
    "options", [{"buckets": 3}, {"buckets": 1, "causal": True}, {"buckets": 32, "farthest": 8}]
)
def test_buckets_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="buckets up to distance"):
        distance_buckets(np.zeros(1), **options)
