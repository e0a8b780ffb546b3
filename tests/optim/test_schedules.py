from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.optim import constant, cosine, inverse_sqrt, linear, step_decay, transfer, wsd
from tests.vectors import vector


@pytest.mark.requirement("R-129")
def test_step_decay_vector() -> None:
    v = vector("der-step-decay")
    schedule = step_decay(v.inputs["lr"], v.inputs["steps"], at=v.inputs["at"], factor=v.inputs["factor"])
    v.check([schedule(t) for t in v.inputs["t"]])


def test_step_decay_at_a_share_that_floats_round_up() -> None:
    schedule = step_decay(1.0, 100, at=0.07)  # 0.07 · 100 is 7.000000000000001
    assert (schedule(6), schedule(7)) == (1.0, 0.1)


@pytest.mark.requirement("R-126")
def test_warm_up_vector() -> None:
    v = vector("der-warmup")
    schedule = inverse_sqrt(v.inputs["d_model"], v.inputs["warmup"])
    v.check([schedule(t) for t in v.inputs["t"]])


@pytest.mark.requirement("R-126", "R-138")
def test_warm_up_rises_to_its_peak_at_warmup_then_falls() -> None:
    rates = [inverse_sqrt(512, 4000)(t) for t in range(1, 12001)]
    assert rates.index(max(rates)) == 4000 - 1
    assert all(a < b for a, b in pairwise(rates[:4000]))
    assert all(a > b for a, b in pairwise(rates[3999:]))
    assert max(rates) == pytest.approx((512 * 4000) ** -0.5, rel=1e-12)


def test_step_0_of_the_inverse_root_moves_too() -> None:
    schedule = inverse_sqrt(64, 10)
    assert schedule(0) == schedule(1) > 0


@pytest.mark.requirement("R-130", "R-138")
@pytest.mark.parametrize("shape", [cosine, linear])
@given(steps=st.integers(2, 200), data=st.data())
def test_rise_and_fall(shape: Callable[..., Callable[[int], float]], steps: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, steps - 1))
    final = data.draw(st.floats(0.0, 0.5))
    schedule = shape(1.0, steps, warmup=warmup, final=final)
    rates = [schedule(s) for s in range(steps + 3)]
    assert all(a < b for a, b in pairwise(rates[: warmup + 1]))
    assert all(a > b for a, b in pairwise(rates[warmup : steps + 1]))
    assert rates[warmup] == 1.0
    assert rates[0] > 0
    assert rates[steps:] == pytest.approx([final] * 3, abs=1e-15)


def test_cosine_and_linear_halfway() -> None:
    assert cosine(2.0, 100, final=1.0)(25) == pytest.approx(1 + 0.5 * (1 + 0.5**0.5))
    assert linear(2.0, 100, final=1.0)(25) == pytest.approx(1.75)


def test_warm_up_stable_decay() -> None:
    schedule = wsd(1.0, 100, warmup=9, decay=20, final=0.1)
    rates = [schedule(s) for s in range(101)]
    assert rates[:9] == pytest.approx([(s + 1) / 10 for s in range(9)])
    assert set(rates[9:81]) == {1.0}
    assert rates[90] == pytest.approx(0.55)
    assert rates[100] == pytest.approx(0.1)


def test_without_a_final_rate_they_fall_to_nothing() -> None:
    assert [cosine(1.0, 9)(9), linear(1.0, 9)(9), wsd(1.0, 9, decay=3)(9)] == [0.0, 0.0, 0.0]
    assert [cosine(1.0, 9)(0), linear(1.0, 9)(0), wsd(1.0, 9, decay=3)(0)] == [1.0, 1.0, 1.0]  # no warm-up


def test_settings_at_the_edge_of_what_is_allowed() -> None:
    assert constant(0.0)(5) == 0
    assert step_decay(1.0, 10, at=0.0, factor=0.5)(0) == 2.0
    assert [step_decay(1.0, 10, at=1.0)(s) for s in (9, 10)] == [1.0, 0.1]
    assert [step_decay(1.0, 10)(s) for s in (8, 9)] == [1.0, 0.1]
    assert linear(0.5, 10, final=0.5)(7) == 0.5
    assert wsd(1.0, 10, warmup=4, decay=6)(7) == pytest.approx(0.5)
    assert wsd(1.0, 10, decay=1)(9) == 1.0
    assert cosine(1.0, 5, warmup=4)(3) == pytest.approx(0.8)
    assert inverse_sqrt(1, 1, scale=2.0)(1) == 2.0
    assert inverse_sqrt(4)(4000) == pytest.approx(0.5 * 4000**-0.5)


def test_constant() -> None:
    assert [constant(0.3)(s) for s in (0, 10, 10**9)] == [0.3] * 3


@pytest.mark.requirement("R-136")
def test_transfer_vector() -> None:
    v = vector("der-hparam-transfer")
    small, large = v.inputs["N"]
    v.check(transfer(v.inputs["lr"], v.inputs["batch"], params=small, to_params=large)._asdict())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constant(-1.0), r"constant: lr is -1\.0"),
        (lambda: step_decay(0.1, 10, at=1.5), r"step_decay: at is 1\.5 \(must be a fraction from 0 to 1\)"),
        (lambda: step_decay(0.1, 10, factor=0), "step_decay: factor is 0"),
        (lambda: inverse_sqrt(0), "inverse_sqrt: d_model is 0"),
        (lambda: inverse_sqrt(8, 0), "inverse_sqrt: warmup is 0"),
        (lambda: cosine(0.1, 10, warmup=10), r"cosine: warmup is 10, steps 10 \(must be fewer"),
        (lambda: linear(0.1, 10, final=0.2), r"linear: final is 0\.2, lr 0\.1"),
        (lambda: wsd(0.1, 10, warmup=5, decay=6), "wsd: decay is 6 of 5 steps"),
        (lambda: wsd(0.1, 10, decay=0), "wsd: decay is 0 of 10 steps"),
        (lambda: transfer(0.1, 8, params=0, to_params=1), "transfer: sizes 0 and 1"),
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
