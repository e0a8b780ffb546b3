"""What is measured between steps: with the weights that are kept, in the precision of the training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from chainrule.autograd.mode import mode
from chainrule.train.evaluation import Evaluation
from tests.train.test_trainer import Told, trainer_of


def test_without_batches_there_is_nothing_to_measure() -> None:
    trainer = trainer_of()
    trainer.eval_batches = []
    nothing = trainer.evaluation
    assert math.isnan(nothing.loss()) and nothing.scores() == {} and nothing.entropy() is None
    assert math.isnan(trainer.evaluate())


def test_the_loss_is_the_mean_over_all_batches_and_the_entropy_at_most_that_of_a_guess() -> None:
    trainer = trainer_of()
    losses = [trainer.model.eval().mean_loss([batch]) for batch in trainer.eval_batches]
    assert trainer.evaluate() == pytest.approx(np.mean(losses), rel=1e-6)
    entropy = trainer.evaluation.entropy()
    assert entropy is not None and 0 < entropy <= math.log(11) + 1e-6


def test_scores_see_the_running_mean_in_evaluation_mode_and_the_precision_of_the_training() -> None:
    seen: list[tuple[Any, ...]] = []

    def measure(model: Any, batches: Any) -> dict[str, float | None]:
        seen.append((model.parameters().data.copy(), model.training, mode.precision, len(batches)))
        return {"score": 1.0}

    trainer = trainer_of(ema=0.5, precision="bf16")
    trainer.run(Told())
    trainer.model.train()
    found = Evaluation(trainer.model, trainer.eval_batches, trainer.step, measure)
    assert found.scores() == {"score": 1.0}
    (weights, training, precision, count) = seen[0]
    assert trainer.step.average is not None
    np.testing.assert_array_equal(weights, trainer.step.average.mean)
    assert (weights != trainer.model.parameters().data).any()
    assert (training, precision, count) == (False, "bf16", len(trainer.eval_batches))
