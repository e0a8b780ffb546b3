"""Answers of a policy: seeded, whole, and the same as the sampler's."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.align.rollouts import Rollout, best_of, roll_out
from chainrule.errors import ConfigError
from chainrule.types import IGNORE
from tests.models.tiny import tiny

PROMPTS = [[1, 2, 3], [4], [5, 6]]


@pytest.mark.requirement("R-423")
def test_several_seeded_answers_to_each_prompt() -> None:
    model = tiny("gpt")
    four = [prompt for prompt in PROMPTS for _ in range(4)]
    first = roll_out(model, four, max_new_tokens=3, seed=7)
    assert first.answers == roll_out(model, four, max_new_tokens=3, seed=7).answers
    assert first.answers != roll_out(model, four, max_new_tokens=3, seed=8).answers
    assert first.answers != roll_out(model, four, max_new_tokens=3, seed=7, number=1).answers
    assert len({tuple(answer) for answer in first.answers[:4]}) > 1


def test_rows_to_train_on() -> None:
    drawn = roll_out(tiny("gpt"), PROMPTS, max_new_tokens=4)
    for row, (prompt, answer) in enumerate(zip(PROMPTS, drawn.answers, strict=True)):
        own = drawn.targets[row][drawn.mask[row]]
        assert own.tolist() == answer and len(answer) == 4
        assert drawn.ids[row][: len(prompt) + 3].tolist() == [*prompt, *answer][:-1]
        assert (drawn.targets[row][: len(prompt) - 1] == IGNORE).all()


def test_the_end_belongs_to_the_answer() -> None:
    """Whether to end is a choice of the policy too, so its token is learned like the others."""
    drawn = roll_out(tiny("gpt"), [[1]] * 60, max_new_tokens=5, end=3)
    ended = drawn.ended(3)
    assert 0 < ended.sum() < 60
    for answer, over in zip(drawn.answers, ended, strict=True):
        assert answer.count(3) == over and (over or len(answer) == 5)


def test_a_sharper_temperature_gives_likelier_answers() -> None:
    model = tiny("gpt")
    for parameter in model.parameters():
        parameter.data *= 4
    logs = []
    for temperature in (1.0, 0.2):
        drawn = roll_out(model, PROMPTS * 20, max_new_tokens=4, temperature=temperature)
        logs.append(model.eval().logprobs(drawn.ids, drawn.targets).numpy().sum())
    assert logs[1] > logs[0]


@pytest.mark.parametrize("family", ["gpt", "lstm"])
def test_logprobs_at_a_temperature_are_those_of_what_is_drawn(family: str) -> None:
    """Of the first token of many answers: how often it is drawn, and how often it should be."""
    model, temperature, count = tiny(family), 2.0, 4000
    for parameter in model.parameters():
        parameter.data *= 3 if family == "gpt" else 12
    drawn = roll_out(model, [[1]] * count, max_new_tokens=1, temperature=temperature)
    often = np.bincount([answer[0] for answer in drawn.answers], minlength=11) / count
    words = np.arange(11)[:, None]
    with model.answering():
        p = np.exp(model.logprobs(np.ones_like(words), words, temperature=temperature).numpy().ravel())
        at_1 = np.exp(model.logprobs(np.ones_like(words), words).numpy().ravel())
    assert p.sum() == pytest.approx(1, rel=1e-5)
    assert np.abs(often - p).sum() < 0.08 < np.abs(often - at_1).sum()


def test_the_best_of_many() -> None:
    def reward(rollout: Rollout) -> list[int]:
        return [sum(answer) for answer in rollout.answers]

    model = tiny("gpt")
    rows, one = best_of(model, PROMPTS, reward, 1, max_new_tokens=3)
    assert [sum(answer) for answer in rows.answers] == one.tolist()
    rows, many = best_of(model, PROMPTS, reward, 20, max_new_tokens=3)
    assert [sum(answer) for answer in rows.answers] == many.tolist() and rows.prompts == PROMPTS
    assert many.sum() > one.sum()


def test_what_does_not_fit_the_context_is_refused() -> None:
    model = tiny("gpt")
    with pytest.raises(
        ConfigError, match=rf"answers of 99 .must fit into the model's context of {model.context}"
    ):
        roll_out(model, PROMPTS, max_new_tokens=99)
    with pytest.raises(ConfigError, match="n is 0"):
        best_of(model, PROMPTS, lambda rollout: np.zeros(0), 0, max_new_tokens=1)
