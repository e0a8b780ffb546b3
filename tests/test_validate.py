"""The rules of configs: what holds passes, what does not is refused with its fields."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from chainrule.errors import ConfigError
from chainrule.validate import Check


@dataclass(frozen=True)
class Config:
    n: Any = 3
    width: int = 6
    rate: float = 0.5
    word: str = "wsd"
    limit: float | None = None
    seed: Any = 0


def check(**values: Any) -> Check:
    return Check("test", Config(**values))


def test_what_holds() -> None:
    sound = check()
    sound.at_least(3, "n")
    sound.positive("rate", "limit")  # None by default may be None
    sound.finite("rate")
    sound.not_negative("rate", "limit")
    sound.fraction("rate")
    sound.between(0, 0.5, "rate")
    sound.whole(3, 3, "n")
    sound.whole(0, None, "n")
    sound.one_of("word", ("wsd", "cosine"))
    sound.divides("n", "width", "must divide")
    sound.seed()


@pytest.mark.parametrize(
    ("values", "rule", "message"),
    [
        ({"n": 0}, lambda c: c.at_least(1, "n"), "test: n is 0 (must be at least 1)"),
        ({"n": None}, lambda c: c.at_least(1, "n"), "test: n is None (must be at least 1)"),
        ({"rate": math.inf}, lambda c: c.positive("rate"), "test: rate is inf (must be a positive number)"),
        ({"limit": 0.0}, lambda c: c.duration("limit"), "(must be a positive number of seconds, at most"),
        (
            {"limit": 1e99},
            lambda c: c.duration("limit"),
            "test: limit is 1e+99 (must be a positive number of",
        ),
        ({"rate": math.nan}, lambda c: c.finite("rate"), "test: rate is nan (must be a finite number)"),
        ({"rate": -1.0}, lambda c: c.not_negative("rate"), "(must be 0 or a positive number)"),
        ({"rate": 1.0}, lambda c: c.fraction("rate"), "(must be at least 0 and below 1)"),
        ({"rate": math.nan}, lambda c: c.fraction("rate"), "test: rate is nan"),
        ({"rate": 2.0}, lambda c: c.between(0, 1, "rate"), "(must be from 0 to 1)"),
        ({"n": 2.0}, lambda c: c.whole(0, None, "n"), "(must be an integer, at least 0 and at most"),
        ({"n": 10**13}, lambda c: c.whole(0, None, "n"), "at least 0 and at most 1,000,000,000,000)"),
        ({"n": True}, lambda c: c.whole(0, 9, "n"), "(must be an integer, from 0 to 9)"),
        (
            {"word": "wds"},
            lambda c: c.one_of("word", ("wsd",)),
            "test: word is 'wds' (must be one of wsd; did",
        ),
        ({"n": 4}, lambda c: c.divides("n", "width", "must divide"), "test: width is 6, n 4 (must divide)"),
        ({"seed": -1}, lambda c: c.seed(), "test: seed is -1 (must be from 0 to 2**64 - 1)"),
        ({"seed": 0.5}, lambda c: c.seed(), "test: seed is 0.5"),
        ({"rate": 1e10}, lambda c: c.fraction("rate"), "test: rate is 1e+10 "),
    ],
)
def test_what_does_not_hold(values: dict[str, Any], rule: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rule(check(**values))
    error = caught.value
    assert message in str(error)
    assert error.owner == "test" and error.rule and values.keys() <= error.settings.keys()


def test_a_number_of_twenty_digits_and_a_list_that_repeats_itself_are_refused() -> None:
    config = SimpleNamespace(steps=10**20, names=("a", "b", "a"), other=("a", "b"))
    with pytest.raises(ConfigError, match=r"steps is 1.*0 .must be at most 1,000,000,000,000"):
        Check("it", config).at_least(1, "steps")
    with pytest.raises(ConfigError, match="must be an integer, at least 1"):
        Check("it", config).whole(1, None, "steps")
    with pytest.raises(ConfigError, match="each must occur once, 'a' does not"):
        Check("it", config).distinct("names")
    Check("it", config).distinct("other")
