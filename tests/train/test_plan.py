"""The plan of a run: the schedule, and the number of steps that fit a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.train import TrainConfig
from chainrule.train.config import SCHEDULES
from chainrule.train.plan import OVERTIME, Plan


def simulate(config: TrainConfig, pace: Callable[[float], float]) -> tuple[Plan, int, float, list[float]]:
    """A run whose next step takes `pace(seconds so far)`: the plan, the steps, the seconds, the rates."""
    plan, step, seconds, rates = Plan(config), 0, 0.0, []
    while not plan.finished(step, seconds):
        rates.append(plan.lr(step))
        step, seconds = step + 1, seconds + pace(seconds)
        plan.revise(step, seconds)
    return plan, step, seconds, rates


@given(milliseconds=st.floats(50, 500), decay=st.floats(0.1, 0.9))
def test_a_steady_machine_ends_on_time(milliseconds: float, decay: float) -> None:
    config = TrainConfig(budget=60.0, warmup=10, decay=decay)
    plan, steps, seconds, rates = simulate(config, lambda _: milliseconds / 1e3)
    assert steps == plan.total
    assert abs(seconds - 60) <= max(2, 0.02 * steps) * milliseconds / 1e3
    assert rates[-1] < 0.1 * config.lr + config.lr / (decay * steps)  # the decay is complete


@given(
    milliseconds=st.floats(50, 500),
    drop=st.floats(0.2, 3.0),
    when=st.floats(0, 60),
    decay=st.floats(0.1, 0.9),
)
def test_the_rates_are_those_of_a_run_with_that_many_steps(
    milliseconds: float, drop: float, when: float, decay: float
) -> None:
    def pace(seconds: float) -> float:
        return milliseconds / 1e3 * (1 if seconds < when else drop)

    config = TrainConfig(budget=60.0, warmup=10, decay=decay)
    plan, steps, _, rates = simulate(config, pace)
    if plan.total is not None and plan.total - max(1, round(decay * plan.total)) >= 10:
        same = Plan(TrainConfig(max_steps=plan.total, warmup=10, decay=decay))
        assert rates == [same.lr(step) for step in range(steps)]


@given(milliseconds=st.floats(50, 5000), decay=st.floats(0.1, 0.9), warmup=st.integers(0, 10_000))
def test_a_budget_too_short_for_its_warm_up_falls_from_where_it_has_come(
    milliseconds: float, decay: float, warmup: int
) -> None:
    config = TrainConfig(budget=60.0, warmup=warmup, decay=decay, min_lr=1e-6)
    plan, steps, seconds, rates = simulate(config, lambda _: milliseconds / 1e3)
    assert plan.total == steps and seconds <= 60 * OVERTIME
    top = rates.index(max(rates))
    assert rates[:top] == sorted(rates[:top]) and rates[top:] == sorted(rates[top:], reverse=True)
    fall = max(1, round(decay * steps))
    assert rates[-1] <= min(config.min_lr, max(rates)) + max(rates) / fall * 1.001
    rise = [config.lr * min(1.0, (step + 1) / (warmup + 1)) for step in range(steps - fall + 1)]
    assert rates[: steps - fall + 1] == pytest.approx(rise)


def test_a_machine_that_stalls_is_cut_short() -> None:
    config = TrainConfig(budget=60.0, warmup=10)
    _, _, seconds, _ = simulate(config, lambda seconds: 0.1 if seconds < 40 else 1.0)
    assert 60 * OVERTIME < seconds <= 60 * OVERTIME + 1


def test_the_rate_rises_stays_and_falls() -> None:
    plan = Plan(TrainConfig(max_steps=100, warmup=10, decay=0.5, lr=1.0))
    rates = [plan.lr(step) for step in range(100)]
    assert rates[:10] == sorted(rates[:10]) and 0 < rates[0] < rates[9] < 1
    assert set(rates[10:51]) == {1.0}
    assert rates[50:] == sorted(rates[50:], reverse=True) and 0 < rates[-1] < 0.05


def test_a_short_run_has_a_shorter_warm_up() -> None:
    for max_steps in (1, 2, 3, 10):
        plan = Plan(TrainConfig(max_steps=max_steps, warmup=100))
        assert all(plan.lr(step) > 0 for step in range(max_steps))
        constant = Plan(TrainConfig(max_steps=max_steps, warmup=100, lr=0.5, schedule="constant"))
        assert constant.lr(max_steps - 1) == 0.5  # the last step is the first at the full rate


def test_the_time_left() -> None:
    assert Plan(TrainConfig(max_steps=100)).seconds_left(25, 10.0) == 30.0
    assert Plan(TrainConfig(budget=60)).seconds_left(25, 10.0) == 50.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_steps": 0}, "max_steps is 0"),
        ({"lr": -1.0}, "lr is -1.0"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"budget": 0.0}, "budget is 0.0"),
        ({"decay": 1.0}, "decay is 1.0"),
        ({"beta2": 1.0}, "beta2 is 1.0"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"seed": -1}, "seed is -1"),
        ({"batch_size": 0}, "batch_size is 0"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**settings)


def test_each_schedule_is_one_of_its_own() -> None:
    """A name that the plan forgot would train at a constant rate."""
    rates = [
        tuple(map(Plan(TrainConfig(max_steps=200, warmup=20, schedule=name)).lr, range(0, 200, 7)))
        for name in SCHEDULES
    ]
    assert len(set(rates)) == len(SCHEDULES)
    config = TrainConfig()
    object.__setattr__(config, "schedule", "triangle")
    with pytest.raises(ConfigError, match="schedule is 'triangle' \\(must be one of wsd, cosine"):
        Plan(config)


def test_every_schedule_warms_up_alike() -> None:
    for name in set(SCHEDULES) - {"inverse_sqrt"}:
        plan = Plan(TrainConfig(max_steps=200, warmup=20, lr=0.5, schedule=name))
        assert [plan.lr(step) for step in range(20)] == [0.5 * (step + 1) / 21 for step in range(20)], name


def test_a_drop_inside_the_warm_up_comes_after_it() -> None:
    plan = Plan(TrainConfig(max_steps=50, warmup=100, lr=1.0, schedule="step"))
    rates = [plan.lr(step) for step in range(50)]
    assert rates[:49] == [(step + 1) / 50 for step in range(49)] and rates[49] == 0.1
