"""Alignment where the best policy is known: frontiers, distances, estimates, and rewards that mislead."""

from __future__ import annotations

import numpy as np

from chainrule.align.advantages import KL_ESTIMATORS, kl_estimate
from chainrule.cli.render.plots.canvas import BAD, FAINT, GOOD, INK, Figure, canvas, colors
from chainrule.lessons.alignment import rewards
from chainrule.lessons.alignment.methods import (
    METHODS,
    best_of_n,
    distances,
    grpo_optimum,
    last,
    small_world,
    trained,
)

BETAS = (0.2, 0.4, 0.8, 1.6)
BETA = 0.5
STEPS = 150
SAMPLES = 64  # of a policy, for an estimate of its KL


def bradley_terry() -> Figure:
    """P(first preferred) = σ(r_1 - r_2)."""
    figure, ax = canvas(size=(6, 4))
    x = np.linspace(-6, 6, 241)
    ax.plot(x, 1 / (1 + np.exp(-x)), color=GOOD)
    for gap in (0.0, 2.0):
        p = 1 / (1 + np.exp(-gap))
        ax.plot([gap], [p], "o", color=INK)
        ax.annotate(f"({gap:g}, {p:.2f})", (gap, p), (8, -12), textcoords="offset points", fontsize=9)
    ax.axhline(0.5, color=FAINT, linewidth=0.8)
    ax.axvline(0, color=FAINT, linewidth=0.8)
    ax.set(
        xlabel="r₁ - r₂, the difference of rewards", ylabel="P(first answer preferred)",
        title="Bradley-Terry: only the difference counts",
    )  # fmt: skip
    return figure


def frontier() -> Figure:
    """No policy lies above the curve; DPO and PPO at four β, best of n, and the reference."""
    world = small_world()
    figure, ax = canvas(size=(7, 4.6))
    _, kls, means = zip(*world.frontier(np.geomspace(0.05, 20, 120)), strict=True)
    ax.plot(kls, means, color=INK, label="best policy for each β")
    for name, color, mark in (("DPO", GOOD, "o"), ("PPO", BAD, "x")):
        tables = [world.policy(last(trained(world, name, beta, STEPS))) for beta in BETAS]
        points = [(world.kl(table), world.reward(table)) for table in tables]
        ax.plot(
            *zip(*points, strict=True), mark, color=color, label=f"{name}, β = {', '.join(map(str, BETAS))}"
        )
    points = [
        (world.kl(table), world.reward(table)) for table in (best_of_n(world, n) for n in (1, 2, 4, 8, 16))
    ]
    ax.plot(*zip(*points, strict=True), "s", color=FAINT, markersize=4, label="best of 1, 2, 4, 8, 16")
    ax.set(xlabel="KL(π ‖ π_ref), nats", ylabel="E[r]", title="Reward and what it costs", xlim=(-0.05, 2.2))
    ax.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def distance() -> Figure:
    """Total variation to the best policy, step by step; the dotted line is where GRPO must end."""
    world = small_world()
    figure, ax = canvas(size=(7, 4.6))
    for name, color in zip(METHODS, colors(len(METHODS)), strict=True):
        steps, apart = zip(*distances(world, name, BETA, STEPS * 2, 10), strict=True)
        ax.semilogy(steps, apart, color=color, label=name)
    ends = world.distance(grpo_optimum(world, BETA), world.optimum(BETA))
    ax.axhline(ends, color=FAINT, linestyle=":", label=f"GRPO's own optimum, {ends:.2f} away")
    ax.set(
        xlabel="step", ylabel="total variation to π*", title=f"How near each method comes (β = {BETA:g})",
        ylim=(1e-5, 1.3),
    )  # fmt: skip
    ax.legend(frameon=False, fontsize=9)
    return figure


def beta_effect() -> Figure:
    """A small β buys reward with distance; the reference is what remains at a large one."""
    world = small_world()
    figure, axes = canvas(1, 2, size=(10, 4))
    betas, kls, means = zip(*world.frontier(np.geomspace(0.05, 10, 100)), strict=True)
    learned = [world.policy(last(trained(world, "DPO", beta, STEPS))) for beta in BETAS]
    for ax, curve, measure, name in (
        (axes[0], means, world.reward, "E[r]"),
        (axes[1], kls, world.kl, "KL(π ‖ π_ref), nats"),
    ):
        ax.semilogx(betas, curve, color=INK, label="best policy")
        ax.semilogx(BETAS, [measure(table) for table in learned], "o", color=GOOD, label="DPO")
        ax.axhline(measure(world.policy(world.reference)), color=FAINT, linestyle="--", label="reference")
        ax.set(xlabel="β", ylabel=name)
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def kl_estimators() -> Figure:
    """The mean of each estimate, exactly, and how far estimates from a few samples lie from it."""
    world = small_world()
    reference = world.logprobs(world.reference)
    figure, axes = canvas(1, 2, size=(10, 4))
    betas = np.geomspace(0.3, 20, 40)
    exact = [world.kl(world.optimum(beta)) for beta in betas]
    for name, color in zip(KL_ESTIMATORS, (GOOD, BAD, INK), strict=True):
        means, noise = [], []
        for beta in betas:
            p = world.optimum(beta)
            each = kl_estimate(np.log(p), reference, name)
            mean = (p * each).sum(axis=1)
            means.append(mean.mean())
            noise.append(np.sqrt(((p * each**2).sum(axis=1) - mean**2) / SAMPLES).mean())
        axes[0].plot(exact, means, color=color, linestyle="--" if name == "k3" else "-", label=name)
        axes[1].loglog(exact, noise, color=color, label=name)
    axes[0].set(xlabel="KL, exact", ylabel="mean of the estimate", title="k2 is biased, k1 and k3 are not")
    axes[1].set(
        xlabel="KL, exact", ylabel=f"standard error, {SAMPLES} samples", title="near the reference k1 is noisy",
    )  # fmt: skip
    axes[0].legend(frameon=False)
    return figure


def reward_hacking() -> Figure:
    """PPO on a reward model that was taught by too few kinds of answers: what it says, and what is true."""
    world = rewards.careless_world()
    seen = rewards.learned_reward(world)
    figure, axes = canvas(1, 2, size=(10, 4), sharey=True)
    for ax, beta in zip(axes, (0.0, 0.1), strict=True):
        found = rewards.hacked(world, seen, beta)
        ax.plot(found.proxy, color=BAD, label="by the reward model")
        ax.plot(found.true, color=GOOD, label="true score")
        ax.axhline(found.true[0], color=FAINT, linestyle="--", label="the reference")
        ax.set(xlabel="step of PPO", title=f"β = {beta:g}")
    axes[0].set_ylabel("score")
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def length_bias() -> Figure:
    """Rewards of new answers against their lengths."""
    lengths, found = rewards.length_bias()
    figure, ax = canvas(size=(6, 4))
    ax.scatter(lengths, found, color=GOOD, s=20, alpha=0.7)
    r = np.corrcoef(-lengths, found)[0, 1]
    ax.set(
        xlabel="tokens of an answer", ylabel="reward", title=f"Taught that short is good: correlation {r:.2f}"
    )
    return figure
