"""Alignment: numbers of the world are the library's, and methods come as near as they do in the lessons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.lessons.alignment.methods import distances, small_world


def test_the_world_is_that_of_the_lessons(ask: Any) -> None:
    found, world = ask("/api/alignment", beta=0.5), small_world()
    assert np.allclose(found["best"], world.optimum(0.5)) and found["rewards"] == world.rewards.tolist()
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert found["at"] == {
        "kl": names["world"].kl(names["best"]),
        "reward": names["world"].reward(names["best"]),
    }
    assert found["distance"] == world.distance(names["reference"], names["best"])


def test_no_policy_lies_above_the_frontier(ask: Any) -> None:
    found = ask("/api/alignment", beta=1.0)
    curve = sorted((point["kl"], point["reward"]) for point in found["frontier"])
    kl, reward = map(np.array, zip(*curve, strict=True))
    assert (np.diff(reward) > 0).all()
    for each in found["best_of_n"]:
        assert each["reward"] <= np.interp(each["kl"], kl, reward) + 0.02


def test_dpo_comes_nearer_as_in_the_lessons(ask: Any) -> None:
    found = ask("/api/alignment/train", method="DPO", beta=0.5, steps=30)
    curve = [(each["step"], each["distance"]) for each in found["curve"]]
    assert curve == distances(small_world(), "DPO", 0.5, 30, 1)
    assert curve[-1][1] < curve[0][1] / 2
    assert np.allclose(np.sum(found["policy"], axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("", {"beta": 0}, "β is 0 (must be from 0.05 to 5)"),
        ("", {"seed": -1}, "world -1"),
        ("/train", {"method": "luck"}, "method 'luck' (must be one of DPO, PPO, REINFORCE, GRPO)"),
        ("/train", {"method": "DPO", "steps": 9999}, "9999 steps"),
    ],
)
def test_refusals(ask: Any, path: str, asked: dict[str, Any], said: str) -> None:
    assert said in ask(f"/api/alignment{path}", status=400, **asked)["error"]
