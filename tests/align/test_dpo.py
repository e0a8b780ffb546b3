"""Pairs of answers as batches, and the model that learns from them."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

from chainrule.align import DPO, Preference, pairs_of, preference_loss
from chainrule.align.dpo import answer_logprobs, preference_rows
from chainrule.align.preference_losses import LOSSES
from chainrule.autograd.gradcheck import gradcheck_model
from chainrule.errors import DataError
from chainrule.generate import score
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch
from chainrule.types import IGNORE
from tests.models.tiny import tiny

PREFERENCES = [
    Preference([1, 2], [3, 4, 5], [6]),
    Preference([7], [2], [3, 3]),
    Preference([4, 4, 4], [1, 2], [2, 1]),
]


def policy(family: str = "gpt") -> Any:
    return tiny(family).eval()


@pytest.mark.requirement("R-378")
def test_only_answers_count() -> None:
    ids, targets = preference_rows(PREFERENCES)
    assert ids.shape == targets.shape == (3, 2, 4)
    assert ids[0].tolist() == [[1, 2, 3, 4], [1, 2, 0, 0]]
    assert targets[0].tolist() == [[IGNORE, 3, 4, 5], [IGNORE, 6, IGNORE, IGNORE]]


@pytest.mark.parametrize("family", ["gpt", "llama", "lstm"])
def test_logprobs_of_answers_are_those_of_scoring(family: str) -> None:
    model = policy(family)
    ids, targets = preference_rows(PREFERENCES)
    found = answer_logprobs(model, ids, targets).numpy()
    for row, preference in enumerate(PREFERENCES):
        for side, answer in enumerate(preference[1:]):
            alone = score(model, [*preference.prompt, *answer])[len(preference.prompt) - 1 :]
            assert found[row, side] == pytest.approx(alone.sum(), rel=1e-5)


@pytest.mark.requirement("R-410")
@pytest.mark.parametrize(
    ("preference", "said"),
    [
        (Preference([1], [2], [2]), "preference 1: chosen and rejected are the same"),
        (Preference([1], [], [2]), "preference 1: an empty prompt or answer"),
        (Preference([], [3], [2]), "preference 1: an empty prompt or answer"),
    ],
)
def test_what_is_no_comparison_is_refused(preference: Preference, said: str) -> None:
    with pytest.raises(DataError, match=said):
        preference_rows([PREFERENCES[0], preference])


@pytest.mark.requirement("R-421")
@pytest.mark.parametrize("loss", LOSSES)
def test_at_the_start_the_margin_is_zero(loss: str) -> None:
    """A policy that is its reference: -ln σ(0) = ln 2."""
    model = DPO(policy(), preference_loss(loss, beta=0.2))
    batch = pairs_of(copy.deepcopy(model.policy), PREFERENCES)
    want = {"sigmoid": math.log(2), "robust": math.log(2), "ipo": (1 / 0.4) ** 2, "hinge": 1.0}[loss]
    assert model.loss(*batch).item() == pytest.approx(want, rel=1e-6)
    assert model.metrics([batch])["rewards/margins"] == pytest.approx(0, abs=1e-6)


@pytest.mark.requirement("R-421")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("agreement", [1.0, 0.8])
def test_gradients_of_a_whole_model(loss: str, agreement: float) -> None:
    reference = policy().to(np.float64)
    model = DPO(tiny("gpt").to(np.float64).eval(), preference_loss(loss, beta=0.7))
    for parameter in model.parameters():
        parameter.data *= 2
    pairs, targets = pairs_of(reference, PREFERENCES, agreement)
    assert gradcheck_model(model.parameters(), lambda: model.loss(pairs, targets)) < 1e-6


def test_the_reference_and_microbatches_change_nothing() -> None:
    reference = policy()
    before = reference.parameters().data.copy()
    model = DPO(copy.deepcopy(reference).unfreeze())
    for parameter in model.parameters():
        parameter.data *= 1.5
    pairs, targets = pairs_of(reference, PREFERENCES, batch_size=2)
    gradients = []
    for accumulate in (1, 3):
        model.parameters().zero_grad()
        backward(model, Batch(pairs, targets), accumulate=accumulate)
        gradients.append(model.parameters().grad.copy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(reference.parameters().data, before)


def test_it_learns_who_is_preferred() -> None:
    reference = policy()
    model = DPO(copy.deepcopy(reference))
    batch = pairs_of(reference, PREFERENCES)
    parameters = model.parameters()
    for _ in range(30):
        parameters.zero_grad()
        model.loss(*batch).backward()
        parameters.data -= 0.5 * parameters.grad
    found = model.metrics([batch])
    assert found["rewards/accuracies"] == 1
    assert found["rewards/margins"] == pytest.approx(found["rewards/chosen"] - found["rewards/rejected"])
