"""Every method of alignment in a world whose best policy is known: how near does each come?

    python -m benchmarks.lessons.alignment [--steps 300] [--beta 0.5]           prints a table in Markdown

Two prompts, nine answers of two tokens. The reference is a GPT with random weights, rewards are drawn from a normal
distribution. `distance` is the total variation to the best policy, of the prompt where it is larger; `objective` is
E[r] - β KL. DPO learns from all pairs with their exact probabilities, the others from 128 answers of their own a step.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from benchmarks.harness import command_line, progress
from benchmarks.report import markdown
from chainrule.align import DPO, GRPO, PPO, GroupConfig, PPOConfig, Reinforce, World, preference_loss
from chainrule.align.preference_losses import LOSSES
from chainrule.models import LanguageModel
from chainrule.optim import AdamW

LR = 2e-3
ANSWERS = 128  # in a rollout


def by_dpo(world: World, loss: str, beta: float, steps: int) -> LanguageModel:
    """A policy that has learned from all pairs at once."""
    policy: LanguageModel = copy.deepcopy(world.reference).unfreeze()
    model = DPO(policy, preference_loss(loss, beta=beta))
    pairs, targets = world.preferences()
    parameters = model.parameters()
    optimizer = AdamW(parameters, LR, weight_decay=0.0)
    for step in range(steps):
        parameters.zero_grad()
        model.loss(pairs, targets).backward()
        optimizer.step(LR * (1 - step / steps))
    return policy


def by_rollouts(world: World, method: Any, steps: int) -> LanguageModel:
    """A policy that has learned from its own answers."""
    prompts = [[prompt] for prompt in world.prompts] * (ANSWERS // len(world.prompts) // method.group)
    for step in range(steps):
        method.step(prompts, step, LR * (1 - step / steps))
    policy: LanguageModel = method.policy
    return policy


def methods(world: World, beta: float, steps: int) -> dict[str, Callable[[], LanguageModel]]:
    """How to train by each method, by name"""

    def fresh() -> Any:
        return copy.deepcopy(world.reference).unfreeze()

    common: dict[str, Any] = {"beta": beta, "max_new_tokens": world.answers.shape[1]}
    found: dict[str, Callable[[], LanguageModel]] = {
        f"DPO, {loss}": lambda loss=loss: by_dpo(world, loss, beta, steps) for loss in LOSSES
    }
    for name, whiten in (("PPO", True), ("PPO, advantages not whitened", False)):
        config = PPOConfig(**common, lam=1.0, epochs=2, whiten=whiten)
        found[name] = lambda c=config: by_rollouts(
            world, PPO(fresh(), world.reference, world.score, c), steps
        )
    for kind in (Reinforce, GRPO):
        config = GroupConfig(**common, group=ANSWERS // len(world.prompts))
        found[kind.__name__] = lambda k=kind, c=config: by_rollouts(
            world, k(fresh(), world.reference, world.score, c), steps
        )
    return found


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--beta", type=float, default=0.5)
    args = parser.parse_args()
    world = World.random(vocabulary=3, length=2, prompts=2, seed=1)
    best = world.optimum(args.beta)

    def row(name: str, policy: Any) -> list[str]:
        reward, kl = world.reward(policy), world.kl(policy)
        numbers = (world.distance(policy, best), reward, kl, reward - args.beta * kl)
        return [name, f"{numbers[0]:.1e}", *(f"{number:.3f}" for number in numbers[1:])]

    rows = [row("the best policy", best), row("the reference", world.policy(world.reference))]
    for name, train in methods(world, args.beta, args.steps).items():
        progress(name)
        rows.append(row(name, world.policy(train())))
    print(markdown(["", "distance", "reward", "KL", "objective"], rows))


if __name__ == "__main__":
    main()
