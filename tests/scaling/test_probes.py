"""Probes: a smooth measure and one with a threshold, for each size of a model."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import DataError
from chainrule.models import GPT, GPTConfig
from chainrule.random import seeded
from chainrule.scaling.probes import Item, by_size, few_shots, probe, scrambled, sums

TOKENIZER = cr.text.CharTokenizer("0123456789+=>\nabcdefghijklmnopqrstuvwxyz")


def trained(width: int, items: list[Item], steps: int) -> GPT:
    """A GPT that has seen these items so many times"""
    with seeded(0):
        model = GPT(
            GPTConfig(n_layer=1, n_head=2, n_embd=width, block_size=32, vocab_size=TOKENIZER.vocab_size)
        )
    optimizer = cr.optim.AdamW(model.parameters(), 1e-2)
    rows = np.stack([TOKENIZER.encode((p + a).ljust(12, "\n"))[:12] for p, a in items])
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(rows[:, :-1], rows[:, 1:]).backward()
        optimizer.step()
    return model


@pytest.mark.requirement("R-447")
@pytest.mark.parametrize(
    "items",
    [sums(8, digits=1), scrambled(["cat", "dog", "sun", "sea"]), few_shots(scrambled(["ab", "cd", "ef"]), 1)],
    ids=["sums", "scrambled", "few shots"],
)
def test_both_measures_for_each_size(items: list[Item]) -> None:
    models = [trained(width, items, 5) for width in (4, 16)]
    found = by_size(models, TOKENIZER, items)
    assert list(found) == [model.count() for model in models] and len(found) == 2
    for each in found.values():
        assert each.items == len(items) and each.nats > 0
        assert 0 <= each.exact <= each.tokens <= 1


@pytest.mark.requirement("R-447")
def test_the_smooth_measure_moves_before_the_one_with_a_threshold() -> None:
    items = sums(12, digits=2, seed=1)
    found = [probe(trained(32, items, steps), TOKENIZER, items) for steps in (1, 15, 150)]
    assert (
        found[1].nats < 0.8 * found[0].nats and found[1].exact <= 0.25
    )  # it has learned much, and gets no answer
    assert found[2].exact > 0.8 and found[2].nats < 0.3


def test_the_items_are_what_they_say() -> None:
    for prompt, answer in sums(50, digits=3):
        a, b = prompt.removesuffix("=").split("+")
        assert int(a) + int(b) == int(answer) and answer.endswith("\n")
    assert sums(5, seed=1) == sums(5, seed=1) != sums(5, seed=2)
    for (prompt, answer), word in zip(scrambled(["three", "seven"]), ["three", "seven"], strict=True):
        assert sorted(prompt[:-1]) == sorted(word) and answer == word + "\n"
    one, two, three = scrambled(["ab", "cd", "ef"])
    assert few_shots([one, two, three], 2) == [
        Item(one.prompt + one.answer + two.prompt + two.answer + three.prompt, three.answer)
    ]


def test_a_probability_is_that_of_the_model() -> None:
    items = sums(3)
    model = trained(8, items, 3)
    wanted = []
    for prompt, answer in items:
        ids = TOKENIZER.encode(prompt + answer)[None]
        n = len(answer)
        with model.answering():
            wanted += (-model.logprobs(ids[:, :-1], ids[:, 1:]).numpy()[0, -n:]).tolist()
    assert probe(model, TOKENIZER, items).nats == pytest.approx(np.mean(wanted), rel=1e-5)


def test_nothing_to_probe_is_refused() -> None:
    with pytest.raises(DataError, match="no items"):
        probe(trained(4, sums(2), 1), TOKENIZER, [])
    with pytest.raises(DataError, match="3 of 3 items"):
        few_shots(sums(3), 3)
