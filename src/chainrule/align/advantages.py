"""Advantages: how much better an action was than what was to be expected.

    δ_t = r_t + γ V_{t+1} - V_t           the surprise of one step
    A_t = δ_t + γλ A_{t+1}                generalized advantage estimation (Schulman et al. 2016)

λ = 1 takes the rewards as they came (no bias, much noise), λ = 0 trusts the value of the next state (the reverse).
Rows are texts; `mask` is True at the tokens of the answer, which stand side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ShapeError

Rows = npt.NDArray[np.floating[Any]]
Mask = npt.NDArray[np.bool_]


def kl_penalized(scores: Rows, logs: Rows, reference: Rows, mask: Mask, beta: float) -> Rows:
    """The reward of each token (B, T): -β ln π/π_ref of its own, and at the last one the score of the answer (B,)

    Their sum is r(x, y) - β ln π(y|x)/π_ref(y|x).

    >>> logs, reference = np.array([[-1.0, -1.0]]), np.array([[-2.0, -3.0]])
    >>> kl_penalized(np.array([1.0]), logs, reference, np.ones((1, 2), bool), beta=0.1).round(4).tolist()
    [[-0.1, 0.8]]
    """
    rewards = np.where(mask, -beta * (logs - reference), 0.0)
    last = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
    rewards[np.arange(len(rewards)), last] += scores
    return rewards


def gae(rewards: Rows, values: Rows, mask: Mask, gamma: float = 1.0, lam: float = 0.95) -> tuple[Rows, Rows]:
    """rewards (B, T), values (B, T) -> advantages and returns (B, T), 0 at padding

    With rewards that the values foresee exactly nothing is a surprise:

    >>> gae(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]]), np.ones((1, 2), bool))[0].tolist()
    [[0.0, 0.0]]
    """
    if not rewards.shape == values.shape == mask.shape:
        raise ShapeError(
            f"gae: rewards {rewards.shape}, values {values.shape}, mask {mask.shape} (must be equal)"
        )
    values = np.where(mask, values, 0.0).astype(np.float64)  # nothing is to be expected behind the end
    advantages = np.zeros(values.shape)
    later: Rows = np.zeros(len(values))
    following: Rows = np.zeros(len(values))
    for t in reversed(range(values.shape[1])):
        surprise = rewards[:, t] + gamma * following - values[:, t]
        later = np.where(mask[:, t], surprise + gamma * lam * later, 0.0)
        advantages[:, t], following = later, values[:, t]
    return advantages, np.where(mask, advantages + values, 0.0)


def whitened(x: Rows, mask: Mask) -> Rows:
    """x with mean 0 and standard deviation 1 over the tokens that count; 0 at padding.

    x (B, T), mask (B, T) -> (B, T)
    """
    counted = x[mask]
    return np.where(mask, (x - counted.mean()) / (counted.std() + 1e-8), 0.0)


def group_advantages(scores: Rows, group: int, *, scaled: bool = True) -> Rows:
    """scores (B,) of groups of `group` answers to one prompt -> how much better than its group each is (B,)

    `scaled` also divides by the standard deviation of the group (Shao et al. 2024).

    >>> group_advantages(np.array([1.0, 3.0, 5.0, 5.0]), 2, scaled=False).tolist()
    [-1.0, 1.0, 0.0, 0.0]
    """
    rows = _groups(scores, group)
    apart = rows - rows.mean(axis=1, keepdims=True)
    if scaled:
        apart = apart / (rows.std(axis=1, keepdims=True) + 1e-8)
    return apart.reshape(-1)


def leave_one_out(scores: Rows, group: int) -> Rows:
    """scores (B,) -> each less the mean of the others of its group (B,): a baseline that does not depend on it

    >>> leave_one_out(np.array([1.0, 3.0, 5.0]), 3).tolist()
    [-3.0, 0.0, 3.0]
    """
    rows = _groups(scores, group)
    others = (rows.sum(axis=1, keepdims=True) - rows) / (group - 1)
    return (rows - others).reshape(-1)


def _groups(scores: Rows, group: int) -> Rows:
    if group < 2 or len(scores) % group:
        raise ShapeError(f"group is {group}, of {len(scores)} scores (must be at least 2, and divide them)")
    return np.asarray(scores, np.float64).reshape(-1, group)


KL_ESTIMATORS = ("k1", "k2", "k3")


def kl_estimate(logs: Rows, reference: Rows, kind: str = "k1") -> Rows:
    """Estimates of KL(π ‖ π_ref) from samples of π, one each; their mean is the estimate

    logs (B, T), reference (B, T) -> (B, T)

    With d = ln π - ln π_ref: k1 = d has no bias and much noise, k2 = d²/2 little noise and a bias; k3 = e^-d - 1 + d
    has no bias, less noise than k1 near the reference, and is never negative. (Schulman 2020)
    """
    d = logs - reference
    return {"k1": d, "k2": d * d / 2, "k3": np.expm1(-d) + d}[kind]
