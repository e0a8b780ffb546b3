"""What the alignment view shows: a world so small that the best policy is known, and how near methods come."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from chainrule.align import World
from chainrule.align.worlds import Table
from chainrule.errors import ConfigError
from chainrule.lessons.alignment.methods import METHODS, best_of_n, small_world, trained
from chainrule.web.jobs import Tell

BETAS = (0.05, 5.0)
SIZES: dict[str, Any] = {"vocabulary": 3, "length": 2, "prompts": 2}
FRONTIER = np.geomspace(0.04, 12.0, 40).tolist()
DRAWN = (1, 2, 4, 8, 16, 64)  # answers of which the best is taken
STEPS = (10, 400)
POINTS = 30  # of a curve of distances
SEEDS = 1000


def choices() -> dict[str, Any]:
    """What can be asked for."""
    return {"betas": BETAS, "steps": STEPS, "worlds": SEEDS, "methods": list(METHODS)}


@lru_cache(maxsize=8)
def world_of(seed: int) -> World:
    """The world of the lessons, or another one."""
    if not 0 <= seed < SEEDS:
        raise ConfigError(f"alignment: world {seed} (must be from 0 to {SEEDS - 1})")
    return small_world() if seed == 1 else World.random(**SIZES, seed=seed)


def shown(seed: int, beta: float) -> dict[str, Any]:
    """All answers with their rewards, the reference, the best policy at β, and the frontier of all β."""
    world = world_of(seed)
    _check(beta)
    reference, best = world.policy(world.reference), world.optimum(beta)
    return {
        "answers": world.answers.tolist(),
        "prompts": list(world.prompts),
        "rewards": world.rewards.tolist(),
        "reference": reference.tolist(),
        "best": best.tolist(),
        "at": point(world, best),
        "start": point(world, reference),
        "distance": world.distance(reference, best),
        "frontier": [{"beta": b, "kl": kl, "reward": r} for b, kl, r in world.frontier(FRONTIER)],
        "best_of_n": [{"n": n, **point(world, best_of_n(world, n))} for n in DRAWN],
        "python": _program(seed, beta),
    }


def approached(seed: int, method: str, beta: float, steps: int, tell: Tell) -> dict[str, Any]:
    """The distance to the best policy while a method trains, and where it ends."""
    low, high = STEPS
    if method not in METHODS:
        raise ConfigError(f"alignment: method {method[:40]!r} (must be one of {', '.join(METHODS)})")
    if not low <= steps <= high:
        raise ConfigError(f"alignment: {steps} steps (must be from {low} to {high})")
    _check(beta)
    world = world_of(seed)
    best, table = world.optimum(beta), world.policy(world.reference)
    found = [{"step": 0, "distance": world.distance(table, best), **point(world, table)}]
    every = max(1, steps // POINTS)
    for step, policy in enumerate(trained(world, method, beta, steps), start=1):
        tell(f"{method}: step {step} of {steps}", step / steps)
        if step % every == 0 or step == steps:
            table = world.policy(policy)
            found.append({"step": step, "distance": world.distance(table, best), **point(world, table)})
    return {"method": method, "beta": beta, "curve": found, "policy": table.tolist()}


def point(world: World, policy: Table) -> dict[str, float]:
    """Where a policy lies: its KL to the reference, and its reward."""
    return {"kl": world.kl(policy), "reward": world.reward(policy)}


def _check(beta: float) -> None:
    low, high = BETAS
    if not low <= beta <= high:
        raise ConfigError(f"alignment: β is {beta:g} (must be from {low:g} to {high:g})")


def _program(seed: int, beta: float) -> str:
    sizes = ", ".join(f"{name}={value}" for name, value in SIZES.items())
    return "\n".join(
        [
            "import chainrule as cr",
            "",
            f"world = cr.align.World.random({sizes}, seed={seed})",
            f"reference, best = world.policy(world.reference), world.optimum({beta!r})",
            "print(world.distance(reference, best), world.kl(best), world.reward(best))",
            "",
        ]
    )
