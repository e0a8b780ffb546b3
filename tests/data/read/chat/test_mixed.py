"""Mixtures of conversations: exact proportions, none twice."""

from __future__ import annotations

import pytest

from chainrule.data import Conversation
from chainrule.data.read.chat.mixed import mixed
from chainrule.errors import ConfigError


def talks(name: str, count: int) -> list[Conversation]:
    return [Conversation.of(f"{name} {i}", "yes") for i in range(count)]


SOURCES = {"written": talks("w", 200), "reformatted": talks("r", 2100), "sampled": talks("s", 1000)}
WEIGHTS = {"written": 10_000, "reformatted": 100_000, "sampled": 50_000}


@pytest.mark.requirement("R-382")
def test_proportions_within_a_percent() -> None:
    found = mixed(SOURCES, WEIGHTS)
    total = sum(map(len, found.values()))
    for name, weight in WEIGHTS.items():
        assert len(found[name]) / total == pytest.approx(weight / 160_000, rel=0.01)
        assert len(set(found[name])) == len(found[name]) and set(found[name]) <= set(SOURCES[name])
    assert len(found["written"]) == 200  # all of the scarcest


def test_a_number_of_all_and_a_seed() -> None:
    one, same, other = (mixed(SOURCES, WEIGHTS, 320, seed) for seed in (1, 1, 2))
    assert one == same != other
    assert {name: len(each) for name, each in one.items()} == {
        "written": 20,
        "reformatted": 200,
        "sampled": 100,
    }


@pytest.mark.parametrize(
    ("weights", "count", "said"),
    [
        ({"written": 1}, None, "must name the same"),
        (WEIGHTS | {"sampled": 0}, None, "must be positive numbers"),
        (WEIGHTS, 10**6, "count is 1,000,000 (must be from 1 to 3,200: written has 200)"),
        (WEIGHTS, 8, "none of 'written' at this size"),
    ],
)
def test_refusals(weights: dict[str, float], count: int | None, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        mixed(SOURCES, weights, count)
    assert said in str(error.value)
