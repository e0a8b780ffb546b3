"""The transformer of the recipe for names: stopped and called again, its training ends with the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.recipes import names as recipe

import chainrule as cr
from chainrule.autograd.types import Array
from chainrule.models import GPT, GPTConfig
from chainrule.train.ema import Average

STEPS = 9


class Stopped(Exception):
    pass


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> recipe.Names:
    monkeypatch.setattr(recipe, "BATCH", 8)
    monkeypatch.setattr(recipe, "TELL", 3)
    return recipe.Names([first + "a" * n + last for first in "bcdfgh" for n in range(1, 6) for last in "nrs"])


def trained(names: recipe.Names, state: Path | None, stop: int = 0) -> tuple[Array, Array]:
    cr.seed(1)
    sizes = {"block_size": names.length, "vocab_size": names.vocab_size}
    gpt = GPT(GPTConfig(1, 2, 8, dropout=0.25, **sizes))

    class Follows(Average):
        def update(self, step: int) -> None:
            super().update(step)
            if step == stop:
                raise Stopped

    average = Follows(gpt.parameters(), 0.9)
    recipe.train(names, gpt, STEPS, parts=3, average=average, state=state)
    return gpt.parameters().data.copy(), average.mean.copy()


def test_a_training_that_was_stopped_ends_with_the_same_bits(names: recipe.Names, tmp_path: Path) -> None:
    state = tmp_path / "state.npz"
    with pytest.raises(Stopped):
        trained(names, state, stop=5)
    assert int(np.load(state)["steps"]) == 3
    weights, mean = trained(names, None)
    assert not np.array_equal(weights, mean)
    for got, want in zip(trained(names, state), (weights, mean), strict=True):
        np.testing.assert_array_equal(got, want)


def test_parts_of_a_batch_give_the_gradient_of_the_whole(names: recipe.Names) -> None:
    cr.seed(1)
    gpt = GPT(GPTConfig(1, 2, 8, block_size=names.length, vocab_size=names.vocab_size))
    lengths = np.array([len(row) + 1 for row in names.train])
    found = []
    for parts in (1, 4):
        gpt.parameters().zero_grad()
        recipe.backward(gpt, *names.batch(names.train), lengths, parts)
        found.append(gpt.parameters().grad.copy())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_another_split_has_other_names(names: recipe.Names) -> None:
    lines = [chr(97 + i) * n for i in range(26) for n in range(1, 5)]
    first, same, other = (recipe.Names(lines, split) for split in (0, 0, 1))
    parts = [[bytes(row.tolist()) for row in each.test] for each in (first, same, other)]
    assert parts[0] == parts[1] and set(parts[0]) != set(parts[2])
