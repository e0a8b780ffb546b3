"""DPO: a policy learns from comparisons that one answer is likelier than the other than it was at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from chainrule.align.dpo import DPO, Pairs, answer_logprobs, preference_rows
from chainrule.align.preference_losses import PreferenceLoss, preference_loss
from chainrule.align.rollouts import roll_out
from chainrule.models import LanguageModel, Model
from chainrule.tasks.preferences.answering import AnsweringTask, check_policy
from chainrule.tasks.preferences.comparison_task import ComparisonBatches, ComparisonTask, Encoded
from chainrule.tasks.task import EvalBatches
from chainrule.text.chat.answers import AnswerCoder
from chainrule.types import Ids

SAMPLE = 100  # tokens
TOGETHER = 32  # pairs that the reference reads at once


@dataclass(frozen=True)
class DPOTask(ComparisonTask, AnsweringTask):
    """Comparisons with the log-probabilities of the reference: the model that training begins with."""

    name: ClassVar[str] = "dpo"
    verb: ClassVar[str] = "dpo"
    model: ClassVar[str] = "a policy"
    command: ClassVar[str] = "align dpo"
    watched: ClassVar[bool] = True
    from_start: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("loss", "beta", "noise", "skip_ties")
    loss: str = "sigmoid"
    """Loss of a pair: sigmoid, ipo, hinge or robust."""
    beta: float = 0.1
    """How strongly the policy is held near the model that it begins with."""
    noise: float | None = None
    """Fraction of labels that are wrong, for the loss robust (0.1 unless given)."""
    start: Any = None
    """The model that training began with, where it is not the model that is there."""

    @property
    def preference_loss(self) -> PreferenceLoss:
        """The loss with its settings."""
        more = {} if self.noise is None else {"noise": self.noise}
        return preference_loss(self.loss, beta=self.beta, **more)

    def __post_init__(self) -> None:
        self.preference_loss  # refuses settings that do not fit  # noqa: B018

    def compared_with(self, start: Model) -> Self:
        """The task of a run that began with another model than the one that is there now."""
        return replace(self, start=start)

    def fitted(self, model: Model) -> Self:
        """With what the reference says of every answer, computed once: it never changes."""
        check_policy(model, self.verb)
        fitted = super().fitted(model)
        reference: Any = self.start or model
        training, validation = (referenced(reference, rows) for rows in (fitted.training, fitted.validation))
        return replace(fitted, training=training, validation=validation, start=None)

    def learner(self, model: LanguageModel) -> DPO:
        return DPO(model, self.preference_loss)

    def cut(self, rows: Sequence[Encoded], model: Any, batch_size: int, seed: int = 0) -> PairBatches:
        return PairBatches(rows, batch_size=batch_size, block_size=2**20, seed=seed)

    def scores(self, model: DPO, batches: EvalBatches) -> dict[str, float | None]:
        """Implicit rewards: how often and by how much the preferred answer has the higher one."""
        return dict(model.metrics(batches))

    def evaluate(self, model: LanguageModel, batches: EvalBatches) -> dict[str, Any]:
        """The loss of the margins, and the implicit rewards."""
        return super().evaluate(self.learner(model), batches)

    def loss_in_words(self, nats: float, batches: EvalBatches) -> str:
        return f"{nats:.4f}" + (f" (a guess: {np.log(2):.4f})" if self.preference_loss.likelihood else "")

    def sample(self, model: LanguageModel, seed: int) -> str:
        """The answer to a prompt that is held back."""
        prompt = list(self.validation[0].ids.prompt)
        tokens = SAMPLE if model.any_length else min(SAMPLE, model.context - len(prompt))
        end = AnswerCoder(self.tokenizer).end
        written = roll_out(model, [prompt], max_new_tokens=tokens, end=end, seed=seed).answers[0]
        return self.tokenizer.decode([*prompt, *written])


class PairBatches(ComparisonBatches):
    """Pairs of answers with what the reference says of them."""

    @property
    def tokens(self) -> int:
        return 2 * super().tokens

    def batched(self, rows: Sequence[Encoded]) -> tuple[Pairs, Ids]:
        """Pairs of ids (B, 2, T), reference (B, 2), agreement (B,); targets (B, 2, T)"""
        ids, targets = preference_rows([row.ids for row in rows])
        logs = np.array([row.reference for row in rows], np.float32)
        return Pairs(ids, logs, np.ones(len(rows), np.float32)), targets


def referenced(reference: LanguageModel, rows: Sequence[Encoded]) -> list[Encoded]:
    """The rows with the log-probabilities of both answers under the reference."""
    found = list(rows)
    batches = PairBatches(rows, batch_size=TOGETHER, block_size=2**20) if rows else None
    with reference.answering():
        for items in batches.by_length() if batches else ():
            ids, targets = preference_rows([rows[item].ids for item in items])
            logs = answer_logprobs(reference, ids, targets).numpy()
            for item, (chosen, rejected) in zip(items.tolist(), logs.tolist(), strict=True):
                found[item] = found[item]._replace(reference=(chosen, rejected))
    return found
