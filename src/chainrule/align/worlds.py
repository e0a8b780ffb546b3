"""Worlds so small that the best policy can be computed: whether a method works is then a number, not an impression.

Answers have a few tokens of a small vocabulary, so all of them can be listed. Of policies that maximize

    E_π[r(x, y)] - β KL(π(·|x) ‖ π_ref(·|x))      the best is      π*(y|x) = π_ref(y|x) e^{r(x,y)/β} / Z(x)

and a trained policy can be compared with it, answer by answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from chainrule.align.dpo import Pairs, Preference, answer_logprobs, pairs_of
from chainrule.align.rollouts import Rollout, as_rows
from chainrule.errors import ConfigError
from chainrule.models import GPT, GPTConfig, LanguageModel
from chainrule.random import generator, seeded
from chainrule.types import Ids

Table = npt.NDArray[np.float64]
"""A number for each prompt and each answer, (P, N)"""
LARGEST = 4096  # answers to a prompt


@dataclass(frozen=True)
class World:
    """A reference policy, prompts of one token, all answers to them, and the reward of each."""

    reference: LanguageModel
    prompts: tuple[int, ...]
    answers: Ids
    """(N, T): every row of T tokens there is"""
    rewards: Table
    """(P, N)"""

    @classmethod
    def random(
        cls, *, vocabulary: int = 4, length: int = 2, prompts: int = 2, seed: int = 0, width: int = 32
    ) -> World:
        """A small GPT with random weights as the reference, and rewards from a normal distribution."""
        if not 1 <= prompts <= vocabulary:
            raise ConfigError(
                f"world: {prompts} prompts of {vocabulary} tokens (each must be a token of its own)"
            )
        if vocabulary**length > LARGEST:
            said = f"{vocabulary} tokens, {length} in an answer: {vocabulary**length:,} answers"
            raise ConfigError(f"world: {said} (must be at most {LARGEST:,}, to be listed)")
        config = GPTConfig(n_layer=1, n_head=2, n_embd=width, block_size=length, vocab_size=vocabulary)
        with seeded(seed):
            reference = GPT(config).eval()
        for parameter in reference.parameters():  # far enough from uniform that the reference matters
            parameter.data *= 3
        answers = np.array(list(product(range(vocabulary), repeat=length)), np.int32)
        rewards = generator("rewards of a world", seed=seed).normal(size=(prompts, len(answers)))
        return cls(reference, tuple(range(prompts)), answers, rewards)

    # -- exact numbers --------------------------------------------------------------------------------------------

    def rows(self) -> Rollout:
        """All prompts with all answers as one batch of P·N rows."""
        pairs = [([prompt], answer.tolist()) for prompt in self.prompts for answer in self.answers]
        return as_rows(*map(list, zip(*pairs, strict=True)))

    def logprobs(self, model: LanguageModel) -> Table:
        """ln π(y|x)"""
        rows = self.rows()
        with model.answering():
            found = answer_logprobs(model, rows.ids, rows.targets).numpy()
        return found.astype(np.float64).reshape(self.rewards.shape)

    def policy(self, model: LanguageModel) -> Table:
        """π(y|x)"""
        return np.exp(self.logprobs(model))

    def optimum(self, beta: float) -> Table:
        """π*(y|x) ∝ π_ref(y|x) e^{r(x,y)/β}"""
        logs = self.logprobs(self.reference) + self.rewards / beta
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def distance(self, policy: Table, other: Table) -> float:
        """Total variation, half the sum of all differences, of the prompt where it is largest."""
        return float(np.abs(policy - other).sum(axis=1).max() / 2)

    def reward(self, policy: Table) -> float:
        """E_π[r], the mean over prompts"""
        return float((policy * self.rewards).sum(axis=1).mean())

    def kl(self, policy: Table) -> float:
        """KL(π ‖ π_ref) in nats, the mean over prompts"""
        logs = np.log(np.where(policy > 0, policy, 1.0))
        return float((policy * (logs - self.logprobs(self.reference))).sum(axis=1).mean())

    def frontier(self, betas: Iterable[float]) -> list[tuple[float, float, float]]:
        """(β, KL, reward) of the best policy for each β: no policy of the same KL has more reward"""
        best = [(float(beta), self.optimum(beta)) for beta in betas]
        return [(beta, self.kl(policy), self.reward(policy)) for beta, policy in best]

    # -- what methods learn from ----------------------------------------------------------------------------------

    def score(self, rollout: Rollout) -> Table:
        """The reward of each answer (B,)"""
        place = {tuple(answer): i for i, answer in enumerate(self.answers.tolist())}
        pairs = zip(rollout.prompts, rollout.answers, strict=True)
        return np.array([self.rewards[self.prompts.index(x[-1]), place[tuple(y)]] for x, y in pairs])

    def preferences(self) -> tuple[Pairs, Ids]:
        """Every pair of answers, with the exact probability that the first is preferred (Bradley-Terry)."""
        found, agreement = [], []
        for x, prompt in enumerate(self.prompts):
            for i, j in combinations(range(len(self.answers)), 2):
                found.append(Preference([prompt], self.answers[i].tolist(), self.answers[j].tolist()))
                agreement.append(1 / (1 + np.exp(self.rewards[x, j] - self.rewards[x, i])))
        return pairs_of(self.reference, found, agreement)
