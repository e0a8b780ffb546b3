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
from chainrule.align import PPO, PPOConfig, World
from chainrule.align.preference_losses import LOSSES
from chainrule.lessons.alignment.methods import by_dpo, by_rollouts, grpo_optimum, last, small_world, trained
from chainrule.models import LanguageModel


def methods(world: World, beta: float, steps: int) -> dict[str, Callable[[], LanguageModel]]:
    """How to train by each method, by name"""
    found: dict[str, Callable[[], LanguageModel]] = {
        f"DPO, {loss}": lambda loss=loss: last(by_dpo(world, loss, beta, steps)) for loss in LOSSES
    }

    def not_whitened() -> LanguageModel:
        policy: Any = copy.deepcopy(world.reference).unfreeze()
        length = world.answers.shape[1]
        config = PPOConfig(beta=beta, max_new_tokens=length, lam=1.0, epochs=2, whiten=False)
        return last(by_rollouts(world, PPO(policy, world.reference, world.score, config), steps))

    found["PPO"] = lambda: last(trained(world, "PPO", beta, steps))
    found["PPO, advantages not whitened"] = not_whitened
    for name in ("REINFORCE", "GRPO"):
        found[name] = lambda name=name: last(trained(world, name, beta, steps))
    return found


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--beta", type=float, default=0.5)
    args = parser.parse_args()
    world = small_world()
    best = world.optimum(args.beta)

    def row(name: str, policy: Any) -> list[str]:
        reward, kl = world.reward(policy), world.kl(policy)
        numbers = (world.distance(policy, best), reward, kl, reward - args.beta * kl)
        return [name, f"{numbers[0]:.1e}", *(f"{number:z.3f}" for number in numbers[1:])]

    rows = [row("the best policy", best), row("the reference", world.policy(world.reference))]
    for name, train in methods(world, args.beta, args.steps).items():
        progress(name)
        rows.append(row(name, world.policy(train())))
    rows.append(row("where GRPO must end, with exact gradients", grpo_optimum(world, args.beta)))
    print(markdown(["", "distance", "reward", "KL", "objective"], rows))


if __name__ == "__main__":
    main()
