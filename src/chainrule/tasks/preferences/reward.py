"""Rewards: a model learns from comparisons to give the better text the higher number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from chainrule.align.reward import RewardTraining, comparisons, reward_metrics, scores_of
from chainrule.data import pad
from chainrule.models.reward import Comparisons, Reward
from chainrule.tasks.answer_options import Answer, AnswerOptions, shorten
from chainrule.tasks.preferences.comparison_task import ComparisonBatches, ComparisonTask, Encoded
from chainrule.tasks.task import EvalBatches
from chainrule.text import Tokenizer, prompt_ids
from chainrule.types import Ids
from chainrule.validate import Check


@dataclass(frozen=True)
class RewardTask(ComparisonTask):
    """Comparisons as pairs of whole texts."""

    model: ClassVar[str] = "a reward model"
    verb: ClassVar[str] = "reward"
    command: ClassVar[str] = "align reward"
    scored: ClassVar[str] = "accuracy"
    new_head: ClassVar[bool] = True
    options: ClassVar[tuple[str, ...]] = ("center", "skip_ties")
    center: float = 0.0
    """Weight of (r_w + r_l)² in the loss, which keeps rewards near 0; their differences stay as they are."""

    def __post_init__(self) -> None:
        Check("reward", self).not_negative("center")

    def learner(self, model: Reward) -> Any:
        return RewardTraining(model, self.center) if self.center else model

    def cut(self, rows: Sequence[Encoded], model: Any, batch_size: int, seed: int = 0) -> TextPairBatches:
        return TextPairBatches(rows, batch_size=batch_size, block_size=2**20, seed=seed)

    def scores(self, model: Any, batches: EvalBatches) -> dict[str, float | None]:
        """How often the better text has the higher reward, and whether the model is as sure as it is right."""
        return dict(reward_metrics(getattr(model, "reward", model), batches))

    def loss_in_words(self, nats: float, batches: EvalBatches) -> str:
        return f"{nats:.4f} nats per pair (a guess: {np.log(2):.4f})"

    @classmethod
    def answer_some(
        cls, model: Reward, tokenizer: Tokenizer, prompts: Sequence[str], options: AnswerOptions
    ) -> list[Answer]:
        """The reward of each text; of one beyond the model's context its end is read."""
        rows = [prompt_ids(tokenizer, prompt)[-model.context :] for prompt in prompts]
        rewards = scores_of(model, *pad(rows)).tolist()
        return [{"prompt": p, "reward": reward} for p, reward in zip(prompts, rewards, strict=True)]

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        """The reward and the text."""
        return f"{answer['reward']:+.4f}  {shorten(answer['prompt'])}"


class TextPairBatches(ComparisonBatches):
    """Pairs of whole texts, the better one first."""

    def batched(self, rows: Sequence[Encoded]) -> tuple[Comparisons, Ids]:
        """Comparisons of ids (B, 2, T), mask (B, 2, T); targets (B,), all 0"""
        return comparisons([row.ids for row in rows])
