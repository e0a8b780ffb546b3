"""Policies: a model writes answers to prompts, a reward scores them, and what was better than expected gets likelier.

The reward is a reward model, or a function of texts; the reference is the model that training begins with. What a step
does is said by `align.policy_gradient`, and made a step of an ordinary training by `train.policy`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from chainrule.align.config import GroupConfig, PolicyConfig, PPOConfig
from chainrule.align.group import GRPO, Reinforce
from chainrule.align.policy_gradient import PolicyGradient, Reward
from chainrule.align.ppo import PPO
from chainrule.align.reward import as_reward
from chainrule.align.rollouts import roll_out
from chainrule.data import BatchSource, Order
from chainrule.data.read.prompts import PromptCorpus, as_text, load_prompts
from chainrule.errors import ConfigError, DataError, Setting
from chainrule.models import LanguageModel, Model
from chainrule.models import Reward as RewardModel
from chainrule.models.suited import RULES, Begun, Suited
from chainrule.suggest import hinted
from chainrule.tasks.named import NamedModel
from chainrule.tasks.preferences.answering import AnsweringTask, check_policy
from chainrule.tasks.preferences.comparison_task import SPLIT, unlearned
from chainrule.tasks.preferences.text_reward import TextReward, named, of_texts
from chainrule.tasks.task import EvalBatches
from chainrule.text import Tokenizer
from chainrule.text.chat.answers import AnswerCoder
from chainrule.types import Ids

METHODS: dict[str, tuple[type[PolicyGradient], type[PolicyConfig]]] = {
    "ppo": (PPO, PPOConfig),
    "reinforce": (Reinforce, GroupConfig),
    "grpo": (GRPO, GroupConfig),
}
OF_TRAINING = ("lr", "grad_clip", "seed", "end")  # settings that the training or the tokenizer decides
SETTINGS = tuple(
    dict.fromkeys(
        each.name for _, kind in METHODS.values() for each in fields(kind) if each.name not in OF_TRAINING
    )
)


@dataclass(frozen=True)
class PolicyTask(AnsweringTask):
    """Prompts to learn from, prompts to evaluate on, a reward, and the settings of a method."""

    find = staticmethod(load_prompts)
    name: ClassVar[str] = "ppo"
    default: ClassVar[str] = ""
    model: ClassVar[str] = "a policy"
    command: ClassVar[str] = "align ppo"
    options: ClassVar[tuple[str, ...]] = ("algorithm", "reward", "reward_function", *SETTINGS)
    models: ClassVar[tuple[str, ...]] = ("reward",)
    functions: ClassVar[tuple[str, ...]] = ("reward_function",)
    unit: ClassVar[str] = "minus_objective"
    perplexity: ClassVar[bool] = False
    counted: ClassVar[str] = "prompts"
    watched: ClassVar[bool] = True
    own_loss: ClassVar[bool] = False
    from_start: ClassVar[bool] = True
    corpus: PromptCorpus
    tokenizer: Tokenizer
    training: Any
    """Prompts, and once there is a model their ids."""
    validation: Any
    algorithm: str = "ppo"
    """ppo, reinforce or grpo."""
    settings: PolicyConfig = field(default_factory=PPOConfig)
    reward: NamedModel | None = None
    reward_function: TextReward | None = None
    reference: Any = None
    """The model that training began with, frozen."""
    too_long: int = 0

    @classmethod
    def of(
        cls,
        data: PromptCorpus,
        tokenizer: Tokenizer | None = None,
        *,
        eval_only: bool = False,
        **options: Any,
    ) -> Self:
        """With the options that are given: a method, a reward, and settings of the method."""
        if tokenizer is None:
            raise unlearned(cls.name)
        given = {name: value for name, value in options.items() if value is not None}
        algorithm = given.pop("algorithm", "ppo")
        rewards = {name: given.pop(name) for name in ("reward", "reward_function") if name in given}
        check_reward(rewards, tokenizer)
        training, validation = SPLIT.held_back(data.prompts, as_text, eval_only=eval_only)
        if not eval_only and not (training and validation):
            raise DataError(
                f"{data.name}: {len(data.prompts)} prompts (must be enough to hold back one in ten)"
            )
        settings = settings_of(algorithm, given)
        return cls(data, tokenizer, training, validation, algorithm, settings, **rewards)

    def facts(self) -> dict[str, Any]:
        reward = {} if self.reward is None else {"reward": self.reward.facts}
        function = {} if self.reward_function is None else {"reward_function": named(self.reward_function)}
        settings = {name: v for name, v in vars(self.settings).items() if name not in OF_TRAINING}
        return {"algorithm": self.algorithm} | reward | function | settings

    def prepare(self, model: Model) -> None:
        raise unlearned(self.name)

    def compared_with(self, start: Model) -> Self:
        return replace(self, reference=start)

    @classmethod
    def suited(cls, data: PromptCorpus, **begun: Unpack[Begun]) -> Suited:
        return RULES["ppo"](len(data.prompts))

    def fitted(self, model: LanguageModel) -> Self:
        """With the ids of prompts that leave the model room to answer, and a copy of it as the reference."""
        check_policy(model, self.name)
        coder, room = AnswerCoder(self.tokenizer), self.settings.max_new_tokens
        parts, left_out = [], 0
        for prompts in (self.training, self.validation):
            rows = coder.prompts(prompts)
            fits = [row for row in rows if row and (model.any_length or len(row) + room <= model.context)]
            left_out += len(rows) - len(fits)
            parts.append(fits)
            if rows and not fits:
                rule = f"must leave {room} tokens of the context of {model.context} to the answer"
                raise DataError(f"{self.corpus.name}: {left_out} prompts are too long ({rule})")
        reference = self.reference or copy.deepcopy(model)
        return replace(self, training=parts[0], validation=parts[1], reference=reference, too_long=left_out)

    def policy_gradient(self, model: Any, config: Any) -> PolicyGradient:
        """The method with this model as its policy; rate, clipping and seed are those of the training."""
        end = AnswerCoder(self.tokenizer).end
        settings = replace(self.settings, lr=config.lr, grad_clip=config.clip, seed=config.seed, end=end)
        kind: Any = METHODS[self.algorithm][0]
        return kind(model, self.reference, self.scorer(), settings)

    def scorer(self) -> Reward:
        """The reward of a rollout."""
        if self.reward is not None:
            return as_reward(self.reward.model)
        return of_texts(self.tokenizer, self.reward_function)  # type: ignore[arg-type]

    def batches(
        self, model: Any, *, batch_size: int, seed: int = 0, steps: int | None = None
    ) -> PromptBatches:
        return PromptBatches(self.training, batch_size=batch_size, seed=seed)

    def eval_batches(self, model: Any, *, batch_size: int, limit: int) -> EvalBatches:
        """Prompts that are held back, all of them in one batch of prompts."""
        prompts = self.eval_examples(limit)
        return [(prompts, np.zeros(len(prompts), np.int32))]

    def loss_in_words(self, nats: float, batches: EvalBatches) -> str:
        return f"{nats:.4f} (minus the objective, reward - β KL, of prompts that are held back)"

    def amount(self) -> str:
        long = f"; {self.too_long:,} leave no room for an answer and are left out" if self.too_long else ""
        held_out = f"{len(self.validation):,} to evaluate on"
        return f"{len(self.training):,} prompts of {self.corpus.name} and {held_out}{long}"

    def sample(self, model: LanguageModel, seed: int) -> str:
        """The answer to a prompt that is held back."""
        prompt, end = self.validation[0], AnswerCoder(self.tokenizer).end
        written = roll_out(model, [prompt], max_new_tokens=self.settings.max_new_tokens, end=end, seed=seed)
        return self.tokenizer.decode([*prompt, *written.answers[0]])


class PromptBatches(BatchSource):
    """Prompts in random order."""

    def __init__(self, prompts: Sequence[Sequence[int]], *, batch_size: int, seed: int = 0) -> None:
        self.prompts, self.batch_size = prompts, batch_size
        self.order = Order(len(prompts), seed=seed)

    @property
    def tokens(self) -> int:
        return self.batch_size

    def batch(self, step: int) -> tuple[list[Sequence[int]], Ids]:
        """Ids of B prompts, and targets (B,), all 0"""
        items = self.order.batch(step, self.batch_size)
        return [self.prompts[item] for item in items], np.zeros(len(items), np.int32)


def settings_of(algorithm: str, given: dict[str, Any]) -> PolicyConfig:
    """The settings of an algorithm; one that it does not have is refused."""
    if algorithm not in METHODS:
        rule = hinted(f"must be one of {', '.join(METHODS)}", algorithm, METHODS)
        raise ConfigError(f"algorithm {algorithm!r}: not known ({rule})")
    kind = METHODS[algorithm][1]
    known = {each.name for each in fields(kind)}
    for name in given:
        if name not in known:
            raise ConfigError.of(
                algorithm, {name: given[name]}, f"must be left out: {algorithm} does not use it"
            )
    return kind(**given)


def check_reward(rewards: Mapping[Any, Any], tokenizer: Tokenizer) -> None:
    """There is one reward, and a model reads the tokens that the policy writes."""
    if len(rewards) != 1:
        said = "no reward" if not rewards else "a reward model and a function"
        one = Setting("reward"), " RUN, or ", Setting("reward_function")
        raise ConfigError(f"ppo: {said} (must be one of both: ", *one, ")")
    given = rewards.get("reward")
    if given is not None and not isinstance(given.model, RewardModel):
        rule = "must be a reward model: chainrule align reward"
        raise ConfigError(f"ppo: {given.path} holds a {type(given.model).__name__} ({rule})")
    if given is not None and given.tokenizer != tokenizer:
        raise ConfigError(
            f"ppo: the reward model {given.path} has another tokenizer (must be that of the policy)"
        )
