"""The trainer of a task: of word vectors, of a policy, or of anything that has a loss on a batch."""

from __future__ import annotations

from chainrule.tasks.preferences.policy import PolicyTask
from chainrule.tasks.setup import Setup
from chainrule.train.config import TrainConfig, WordTrainConfig
from chainrule.train.policy import policy_trainer
from chainrule.train.trainer import Trainer
from chainrule.train.word_vectors.trainer import word_trainer

AnyConfig = TrainConfig | WordTrainConfig


def trainer_of(setup: Setup, config: AnyConfig) -> Trainer:
    """A new trainer of the task, model and batches of a setup."""
    task, model, batches, held_out = setup
    if isinstance(config, WordTrainConfig):
        return word_trainer(task, model, config)  # type: ignore[arg-type]
    if isinstance(task, PolicyTask):
        return policy_trainer(task, model, batches, held_out, config)
    scores = task.scores if task.scored or task.watched else None
    learner, by_score = task.learner(model), bool(task.scored)
    return Trainer(learner, batches, held_out, config, task.tokenizer, scores=scores, best_by_score=by_score)
