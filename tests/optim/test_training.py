"""Small seeded experiments: what the optimizers do to a real model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.autograd.types import Array
from chainrule.optim import SGD, Adam, step_decay

DOCS = Path(__file__).parents[2] / "docs" / "derivations" / "optimizers.md"


def spiral(n: int, noise: float = 0.0, seed: int = 0) -> tuple[Array, Array]:
    """Two interleaved spirals: points (n, 2), labels (n,), a share `noise` of them flipped."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    angle = rng.uniform(0.5, 2.5, n) * np.pi
    points = (angle / 3)[:, None] * np.stack(
        [np.cos(angle + np.pi * labels), np.sin(angle + np.pi * labels)], axis=1
    )
    flip = rng.random(n) < noise
    return points.astype(np.float32), np.where(flip, 1 - labels, labels)


def classify(net: nn.MLP, data: tuple[Array, Array]) -> cr.Tensor:
    return ops.cross_entropy(net(data[0]), targets=data[1])


@pytest.mark.requirement("R-118")
def test_variance_of_the_mini_batch_gradient_falls_like_1_over_B() -> None:
    points, labels = spiral(200)
    cr.seed(0)
    net = nn.MLP([2, 4, 2], "tanh").to(np.float64)
    params = net.parameters()

    def gradient(index: Array) -> Array:
        params.zero_grad()
        classify(net, (points[index].astype(np.float64), labels[index])).backward()
        return params.grad.copy()

    single = np.stack([gradient(np.array([i])) for i in range(200)])
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 200, 32)
    np.testing.assert_allclose(
        gradient(chosen), single[chosen].mean(0), atol=1e-14
    )  # the loop's gradient is the mean
    np.testing.assert_allclose(gradient(np.arange(200)), single.mean(0), atol=1e-14)  # full batch

    products = []
    for B in (1, 8, 32, 128):
        means = single[rng.integers(0, 200, (3000, B))].mean(axis=1)
        products.append(B * means.var(axis=0).sum())
    np.testing.assert_allclose(products, np.mean(products), rtol=0.1)


@pytest.mark.requirement("R-129")
def test_noise_falls_after_the_drop_of_the_rate() -> None:
    points, labels = spiral(400, noise=0.2)
    cr.seed(1)
    net = nn.MLP([2, 8, 2], "tanh")
    optimizer = SGD(net.parameters(), 1.0)
    schedule = step_decay(1.0, 600, at=0.5)
    losses = []
    for step in range(600):
        rows = cr.random.generator("rows", step, seed=0).integers(0, 400, 16)
        optimizer.zero_grad()
        classify(net, (points[rows], labels[rows])).backward()
        optimizer.step(schedule(step))
        with cr.no_grad():
            losses.append(classify(net, (points, labels)).item())
    before, after = losses[200:300], losses[350:]
    assert np.std(after) < 0.5 * np.std(before)
    assert np.mean(after) < np.mean(before)


@pytest.mark.requirement("R-132")
def test_the_training_loop_repeats_to_the_bit() -> None:
    train, held_out = spiral(200, seed=1), spiral(200, seed=2)

    def run(seed: int) -> tuple[list[float], float]:
        cr.seed(seed)
        net = nn.MLP([2, 16, 2], "tanh")
        optimizer = Adam(net.parameters(), 0.02)
        losses = []
        for step in range(100):
            rows = cr.random.generator("rows", step).integers(0, 200, 32)
            optimizer.zero_grad()
            loss = classify(net, (train[0][rows], train[1][rows]))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with cr.no_grad():
            return losses, classify(net.eval(), held_out).item()

    first, second, other = run(7), run(7), run(8)
    assert first == second
    assert first != other
    assert first[1] < 0.6 < first[0][0]  # the held-out loss, from about ln 2


def fit(net: nn.MLP, data: tuple[Array, Array], steps: int, lr: float = 0.05) -> float:
    """Full-batch Adam; the final loss."""
    optimizer = Adam(net.parameters(), lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = classify(net, data)
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.mark.requirement("R-135")
def test_wider_networks_narrow_the_gap_between_runs() -> None:
    """Non-convex: narrow nets get caught in different local minima, wide ones end alike."""
    data = spiral(60)
    spread = {}
    for width in (2, 6, 24):
        finals = []
        for seed in range(5):
            cr.seed(seed)
            finals.append(fit(nn.MLP([2, width, 2], "tanh"), data, 100))
        spread[width] = max(finals) - min(finals)
    assert spread[24] < 0.5 * min(spread[2], spread[6]), spread


@pytest.mark.requirement("R-135")
def test_training_too_long_memorizes() -> None:
    train, held_out = spiral(40, noise=0.25, seed=3), spiral(200, noise=0.25, seed=4)
    cr.seed(0)
    net = nn.MLP([2, 64, 2], "tanh")
    curve = []
    for _ in range(8):
        loss = fit(net, train, 50)
        with cr.no_grad():
            curve.append((loss, classify(net, held_out).item()))
    train_losses, held_out_losses = zip(*curve, strict=True)
    assert train_losses[-1] == min(train_losses)
    assert held_out_losses[-1] > 1.2 * min(held_out_losses)


@pytest.mark.requirement("R-134", declared="docs/derivations/optimizers.md")
def test_the_decision_on_step_sizes_is_recorded() -> None:
    decisions = DOCS.read_text(encoding="utf-8").split("## Decisions")[1]
    assert "constant unless a schedule is given" in decisions
    assert "learnable step size" in decisions


@pytest.mark.requirement("R-130")
def test_the_named_extras_are_recorded() -> None:
    decisions = DOCS.read_text(encoding="utf-8").split("## Decisions")[1]
    for extra in ("AdamW", "Lion", "weight decay", "cosine decay with warm-up", "dropout"):
        assert extra in decisions
