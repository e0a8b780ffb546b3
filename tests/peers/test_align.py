"""Alignment against independent code in PyTorch: DPO with its gradients, advantages, and the losses of PPO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import chainrule as cr
from chainrule.align import DPO, Preference, pairs_of, preference_loss
from chainrule.align.advantages import gae
from chainrule.align.policy_gradient import clipped_surrogate
from chainrule.align.ppo import value_loss
from chainrule.types import IGNORE
from tests.battery.checks import distance
from tests.peers.test_gpt import TorchGPT, twins

BETA = 0.3
PREFERENCES = [
    Preference([1, 2, 5], [3, 4, 5, 7], [6, 1]),
    Preference([7], [2], [3, 3, 9, 28]),
    Preference([4, 4, 4, 11], [1, 2], [2, 1, 5]),
]


def torch_logprob(model: TorchGPT, prompt: Any, answer: Any) -> torch.Tensor:
    """ln P of one answer, alone in its row: no padding, no mask."""
    ids = torch.tensor([[*prompt, *answer]])
    logs = F.log_softmax(model(ids[:, :-1]), dim=-1)[0]
    return sum(logs[len(prompt) - 1 + i, token] for i, token in enumerate(answer))  # type: ignore[return-value]


def torch_losses(name: str, margin: torch.Tensor) -> torch.Tensor:
    plain = {
        "sigmoid": lambda m: -F.logsigmoid(BETA * m),
        "robust": lambda m: (-0.9 * F.logsigmoid(BETA * m) + 0.1 * F.logsigmoid(-BETA * m)) / 0.8,
        "ipo": lambda m: (m - 1 / (2 * BETA)).square(),
        "hinge": lambda m: F.relu(1 - BETA * m),
    }
    return plain[name](margin)


@pytest.mark.requirement("R-421")
@pytest.mark.parametrize("name", ["sigmoid", "robust", "ipo", "hinge"])
def test_dpo_loss_and_every_gradient(name: str) -> None:
    policy, theirs = twins("float64", bias=True)
    reference, frozen = twins("float64", bias=True)
    rng = np.random.default_rng(5)
    shift = {key: rng.normal(scale=0.05, size=array.shape) for key, array in policy.state().items()}
    policy.load({key: array + shift[key] for key, array in policy.state().items()})
    with torch.no_grad():
        for key, parameter in theirs.named_parameters():
            parameter += torch.from_numpy(shift[key])
    model = DPO(policy, preference_loss(name, beta=BETA))
    parameters = model.parameters()
    parameters.zero_grad()
    loss = model.loss(*pairs_of(reference, PREFERENCES))
    loss.backward()
    margins = []
    for prompt, chosen, rejected in PREFERENCES:
        sides = [torch_logprob(theirs, prompt, answer) for answer in (chosen, rejected)]
        with torch.no_grad():
            base = [torch_logprob(frozen, prompt, answer) for answer in (chosen, rejected)]
        margins.append((sides[0] - base[0]) - (sides[1] - base[1]))
    wanted = torch_losses(name, torch.stack(margins)).mean()
    wanted.backward()
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-9)
    for key, parameter in theirs.named_parameters():
        ours = dict(policy.named_parameters())[key].grad
        assert parameter.grad is not None and distance(ours, parameter.grad.numpy()) < 1e-8, key


@pytest.mark.requirement("R-420")
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (0.9, 0.5), (0.99, 1.0)])
def test_advantages(gamma: float, lam: float) -> None:
    rng = np.random.default_rng(1)
    lengths, T = [7, 3, 1], 7
    rewards, values = rng.normal(size=(2, 3, T))
    mask = np.arange(T) < np.array(lengths)[:, None]
    rewards, values = rewards * mask, values * mask
    advantages, returns = gae(rewards, values, mask, gamma, lam)
    for row, n in enumerate(lengths):
        r, v = torch.from_numpy(rewards[row, :n]), torch.from_numpy(values[row, :n])
        following = torch.cat([v[1:], torch.zeros(1, dtype=v.dtype)])
        delta = r + gamma * following - v
        weights = torch.tensor(
            [[(gamma * lam) ** (j - i) if j >= i else 0.0 for j in range(n)] for i in range(n)]
        )
        wanted = weights.double() @ delta
        np.testing.assert_allclose(advantages[row, :n], wanted.numpy(), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(returns[row, :n], (wanted + v).numpy(), rtol=1e-6, atol=1e-9)
        assert not advantages[row, n:].any()


@pytest.mark.requirement("R-419")
def test_losses_of_ppo_and_their_gradients() -> None:
    rng = np.random.default_rng(2)
    shape = (4, 6)
    logs, before, advantages, values, returns = (rng.normal(size=shape) * 0.4 for _ in range(5))
    old_values, mask = values + rng.normal(size=shape) * 0.3, rng.random(shape) < 0.7
    ours = [cr.Tensor(x.copy(), requires_grad=True) for x in (logs, values)]
    policy, _ = clipped_surrogate(ours[0], before, advantages, mask, 0.2)
    value, _ = value_loss(ours[1], old_values, returns, mask, 0.2)
    (policy + value).backward()
    theirs = [torch.tensor(x, requires_grad=True) for x in (logs, values)]
    b, a, o, r = (torch.from_numpy(x) for x in (before, advantages, old_values, returns))
    counted = torch.from_numpy(mask)
    ratio = (theirs[0] - b).exp()
    surrogate = torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a)
    near = o + (theirs[1] - o).clamp(-0.2, 0.2)
    errors = torch.max((theirs[1] - r).square(), (near - r).square())
    wanted = -surrogate[counted].mean(), 0.5 * errors[counted].mean()
    (wanted[0] + wanted[1]).backward()
    assert policy.item() == pytest.approx(wanted[0].item()) and value.item() == pytest.approx(
        wanted[1].item()
    )
    for mine, other in zip(ours, theirs, strict=True):
        assert other.grad is not None
        np.testing.assert_allclose(mine.grad, other.grad.numpy(), rtol=1e-7, atol=1e-12)


def test_padding_is_not_counted() -> None:
    """The same pairs alone and in one padded batch."""
    policy, _ = twins("float64", bias=True)
    whole = pairs_of(policy, PREFERENCES)
    assert (whole[1] == IGNORE).any()
    for row, preference in enumerate(PREFERENCES):
        alone = pairs_of(policy, [preference])[0].reference[0]
        np.testing.assert_allclose(whole[0].reference[row], alone, rtol=1e-10)
