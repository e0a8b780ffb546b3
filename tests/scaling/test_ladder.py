"""The ladder: models of equal size or cost, judged alike on the same text."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from chainrule.data import Corpus
from chainrule.errors import ConfigError, DataError
from chainrule.models import GPT, GPTConfig, NeuralNGram, NeuralNGramConfig
from chainrule.scaling.ladder import Ladder
from chainrule.scaling.ladder_networks import FAMILIES, Family, multiply_adds
from chainrule.scaling.rungs import LadderConfig, Rung, table

# Every sentence is one of a few, so more context is worth something at once.
SENTENCES = ("the cat sat on the mat. ", "a dog ran to the café. ", "the dog sat. ", "a cat ran on. ")
TEXT = "".join(np.random.default_rng(0).choice(SENTENCES, 1500))
SMALL = LadderConfig(params=3000, steps=80, batch_size=8, seeds=2, order=3)


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    return Ladder(Corpus("sentences", "test", TEXT), SMALL)


def test_a_longer_memory_of_counts_is_better_and_below_a_guess(ladder: Ladder) -> None:
    unigram, bigram, trigram = (rung.mean for rung in ladder.counted())
    assert math.log2(ladder.tokenizer.vocab_size) > unigram > bigram > trigram > 0


def test_bits_are_per_byte_of_the_text_not_per_token(ladder: Ladder) -> None:
    held_out = TEXT[len(TEXT) - round(0.1 * len(TEXT)) :]
    share = len(held_out.encode()) / len(held_out)
    assert share > 1  # é has two bytes
    assert ladder.task.bits_per_byte(math.log(2)) == pytest.approx(1 / share)


def test_every_rung_is_climbed_and_networks_learn(ladder: Ladder) -> None:
    told: list[float] = []
    rungs = list(ladder.climb(lambda title, share: told.append(share)))
    assert [r.title for r in rungs[:3]] == ["unigram", "bigram", "3-gram"]
    assert [r.title for r in rungs[3:]] == [family.title for family in FAMILIES]
    for rung in rungs[3:]:
        assert len(rung.bits_per_byte) == 2 and len(set(rung.bits_per_byte)) == 2  # two seeds, two results
        assert rung.mean < rungs[0].mean  # better than counting letters
        assert 0.5 * SMALL.params < rung.parameters <= SMALL.params
    assert told[-1] == 1.0


def test_workers_climb_the_same_rungs_and_a_lost_network_costs_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = dataclasses.replace(SMALL, steps=4)
    ladder, failed = Ladder(Corpus("sentences", "test", TEXT), short), []
    alone = [dataclasses.replace(rung, seconds=0) for rung in ladder.climb()]
    shared = [dataclasses.replace(rung, seconds=0) for rung in ladder.climb(workers=2)]
    assert shared == alone and len(alone) == 3 + len(FAMILIES)
    monkeypatch.setattr(Ladder, "fitting", _without_the_gru)
    found = list(ladder.climb(failed=failed.append))
    assert [rung.title for rung in found] == [rung.title for rung in alone if rung.title != "GRU"]
    assert failed == [f"GRU, seed {seed}: no room for it" for seed in range(2)]


def _without_the_gru(ladder: Ladder, family: Family) -> Any:
    if family.title == "GRU":
        raise DataError("no room for it")
    return family.largest(ladder.config.params, ladder.tokenizer.vocab_size)


def test_a_family_grows_to_the_last_step_that_fits(ladder: Ladder) -> None:
    for family in FAMILIES:
        model = ladder.fitting(family)
        larger = dataclasses.replace(
            model.config, **{family.grows: getattr(model.config, family.grows) + family.step}
        )
        assert model.count() <= SMALL.params < type(model)(larger).count()


def test_at_equal_compute_cheap_models_get_more_updates() -> None:
    equal = Ladder(Corpus("sentences", "test", TEXT), dataclasses.replace(SMALL, match="compute"))
    updates = {family.title: equal.updates(equal.fitting(family)) for family in FAMILIES}
    assert updates["GPT"] == SMALL.steps
    assert 10 * SMALL.steps < updates["neural n-gram"] <= 20 * SMALL.steps  # far cheaper
    assert updates["MLP"] > SMALL.steps


def test_multiply_adds_count_products_and_not_lookups() -> None:
    gpt = GPT(GPTConfig(n_layer=1, n_head=1, n_embd=4, block_size=8, vocab_size=10, bias=False))
    # qkv 48, projection 16, MLP 128, head 40, gains of three norms 12, half of 8 positions twice: 32
    assert multiply_adds(gpt) == 48 + 16 + 128 + 40 + 12 + 32
    assert multiply_adds(NeuralNGram(NeuralNGramConfig(block_size=3, vocab_size=10))) == 30


@pytest.mark.requirement("R-511", "R-514")
def test_the_interval_is_students_and_the_table_has_size_and_loss() -> None:
    rung = Rung("x", 1, 1, 0.0, (1.0, 2.0, 3.0))
    assert rung.mean == 2 and rung.interval == pytest.approx(4.303 / math.sqrt(3))
    assert Rung("x", 1, 0, 0.0, (1.0,)).interval is None
    assert "| x | 1 | 1 | 2.000 ± 0.577 | ± 2.484 | 0.0 |" in table([rung])
    assert "| x | 1 | 0 | 1.000 | – | 0.0 |" in table([Rung("x", 1, 0, 0.0, (1.0,))])


def test_a_short_text_and_bad_settings_are_refused() -> None:
    with pytest.raises(DataError, match="bring a longer text"):
        Ladder(Corpus("short", "test", "too short"))
    with pytest.raises(ConfigError, match="seeds is 0"):
        LadderConfig(seeds=0)
    with pytest.raises(ConfigError, match="order is 2"):
        LadderConfig(order=2)
