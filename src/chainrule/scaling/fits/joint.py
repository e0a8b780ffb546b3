"""Laws in parameters and tokens fitted to runs.

    additive   ln L ≈ logsumexp(ln E, ln A - α ln N, ln B - β ln D)
    unified    ln L ≈ α_D logsumexp((α_N/α_D)(ln N_c - ln N), ln D_c - ln D)

Both by the Huber loss of the difference of logarithms, which counts a run far off by its distance, not by the square of
it (Hoffmann et al. 2022). The valley is narrow and has several lowest points: many starts, the best few followed down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from chainrule.errors import DataError
from chainrule.scaling.fits.bootstrap import Estimate, Tell, estimate, resampled
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.laws.joint import Additive, JointLaw, Unified
from chainrule.scaling.laws.power import Floats
from chainrule.scaling.numeric import least_squares

DELTA = 1e-3  # of the Huber loss: differences of ln L below it count by their square
NOTHING = -600.0  # ln of a constant that is 0
MOST = 6.0  # of ln α and of ln α_N/α_D: a step of the search that goes beyond must not overflow
FOLLOWED = 12  # starts of the grid that are followed down


@dataclass(frozen=True)
class JointFit:
    """A law, the intervals of its numbers, and how far each run is from it."""

    law: JointLaw
    estimates: dict[str, Estimate]
    residuals: Floats
    """ln L measured - ln L of the law"""
    draws: list[JointLaw]
    """Laws as likely as this one"""
    noise: float
    """Standard deviation of ln L around the law"""
    free: int
    """Degrees of freedom: runs beyond the numbers of the law"""


class _Form:
    """A law as a vector t of free numbers: what it predicts, its derivative, and where to begin."""

    names: ClassVar[tuple[str, ...]]
    starts: ClassVar[dict[str, tuple[float, ...]]]

    def predict(self, t: Floats, log_N: Floats, log_D: Floats) -> tuple[Floats, Floats]:
        """t (..., P) -> ln L (..., n) and for a single t its derivative (n, P)"""
        raise NotImplementedError

    def law(self, t: Floats) -> JointLaw:
        raise NotImplementedError

    def free(self, law: Any) -> Floats:
        """The numbers of a law"""
        raise NotImplementedError

    def rising(self, t: Floats) -> str:
        """With what the loss does not fall; nothing if all is well"""
        return ""

    def grid(self, log_N: Floats, log_D: Floats, log_L: Floats) -> Floats:
        """Vectors to begin with (k, P)"""
        raise NotImplementedError


class _AdditiveForm(_Form):
    """t = (ln E, ln A, ln B, α, β)"""

    names = ("E", "A", "B", "alpha", "beta")

    def predict(self, t: Floats, log_N: Floats, log_D: Floats) -> tuple[Floats, Floats]:
        e, a, b, alpha, beta = (t[..., i, None] for i in range(5))
        parts = np.stack(np.broadcast_arrays(e, a - alpha * log_N, b - beta * log_D))  # (3, ..., n)
        top = parts.max(axis=0)
        powers = np.exp(parts - top)
        total = powers.sum(axis=0)
        share = powers / total
        derivative = np.stack([share[0], share[1], share[2], -share[1] * log_N, -share[2] * log_D], axis=-1)
        return top + np.log(total), derivative

    def law(self, t: Floats) -> Additive:
        E, A, B = np.exp(t[:3]).tolist()
        return Additive(E, A, B, float(t[3]), float(t[4]))

    def rising(self, t: Floats) -> str:
        without = [name for name, log, power in zip(("params", "tokens"), t[1:3], t[3:], strict=True)
                   if power <= 0 or log < NOTHING]  # fmt: skip
        return " and ".join(without)

    def free(self, law: Additive) -> Floats:
        return np.array([*np.log([max(law.E, 1e-12), law.A, law.B]), law.alpha, law.beta])

    def grid(self, log_N: Floats, log_D: Floats, log_L: Floats) -> Floats:
        """Each exponent with the constants that share what is above the floor between N and D at the middle run"""
        lowest, N, D = np.exp(log_L.min()), np.median(log_N), np.median(log_D)
        above = np.exp(np.median(log_L))
        found = []
        for floor, alpha, beta, split in product(
            (0.2, 0.5, 0.7, 0.85, 0.95),
            (0.1, 0.2, 0.35, 0.5, 0.8),
            (0.1, 0.2, 0.35, 0.5, 0.8),
            (0.2, 0.5, 0.8),
        ):
            rest = max(above - floor * lowest, 1e-3 * lowest)
            constants = math.log(split * rest) + alpha * N, math.log((1 - split) * rest) + beta * D
            found.append([math.log(floor * lowest), *constants, alpha, beta])
        return np.array(found)


class _UnifiedForm(_Form):
    """t = (ln N_c, ln D_c, ln α_N, ln α_D)"""

    names = ("N_c", "D_c", "alpha_N", "alpha_D")

    def predict(self, t: Floats, log_N: Floats, log_D: Floats) -> tuple[Floats, Floats]:
        n_c, d_c, log_n, log_d = (t[..., i, None] for i in range(4))
        alpha_D, p = np.exp(np.minimum(log_d, MOST)), np.exp(np.clip(log_n - log_d, -MOST, MOST))
        parts = np.stack(np.broadcast_arrays(p * (n_c - log_N), d_c - log_D))
        top = parts.max(axis=0)
        powers = np.exp(parts - top)
        total = powers.sum(axis=0)
        share, inside = powers / total, top + np.log(total)
        by_p = alpha_D * share[0] * parts[0]
        derivative = np.stack(
            [alpha_D * share[0] * p, alpha_D * share[1], by_p, alpha_D * inside - by_p], axis=-1
        )
        return alpha_D * inside, derivative

    def law(self, t: Floats) -> Unified:
        return Unified(*np.exp(t).tolist())

    def free(self, law: Unified) -> Floats:
        return np.log([law.N_c, law.D_c, law.alpha_N, law.alpha_D])

    def grid(self, log_N: Floats, log_D: Floats, log_L: Floats) -> Floats:
        N, D, L = np.median(log_N), np.median(log_D), np.median(log_L)
        exponents = (0.03, 0.06, 0.1, 0.2, 0.4)
        return np.array(
            [
                [N + (L + shift) / alpha_N, D + (L - shift) / alpha_D, math.log(alpha_N), math.log(alpha_D)]
                for alpha_N, alpha_D, shift in product(exponents, exponents, (-0.3, 0.0, 0.3))
            ]
        )


def fit_additive(
    runs: Runs, *, resamples: int = 400, seed: int = 0, delta: float = DELTA, tell: Tell | None = None
) -> JointFit:
    """E + A / N^α + B / D^β; estimates also of a, the exponent of the best size for a budget"""
    return _fit(_AdditiveForm(), runs, resamples, seed, delta, tell)


def fit_unified(
    runs: Runs, *, resamples: int = 400, seed: int = 0, delta: float = DELTA, tell: Tell | None = None
) -> JointFit:
    """((N_c/N)^(α_N/α_D) + D_c/D)^α_D; estimates also of a"""
    return _fit(_UnifiedForm(), runs, resamples, seed, delta, tell)


def _fit(form: _Form, runs: Runs, resamples: int, seed: int, delta: float, tell: Tell | None) -> JointFit:
    runs.known("params", "tokens")
    P = len(form.names)
    if len(runs) <= P:
        raise DataError(f"fit: {len(runs)} runs for {P} numbers (must be more)")
    for name in ("params", "tokens"):
        if len(np.unique(getattr(runs, name))) < 3:
            raise DataError(f"fit: fewer than three different {name} (must be at least 3)")
    log_N, log_D, log_L = (np.log(x) for x in (runs.params, runs.tokens, runs.loss))
    starts = form.grid(log_N, log_D, log_L)
    costs = _huber(form.predict(starts, log_N, log_D)[0] - log_L, delta).sum(axis=-1)
    ends = (_descend(form, starts[i], runs, delta) for i in np.argsort(costs)[:FOLLOWED])
    best = min(ends, key=lambda end: end[1])[0]
    if wrong := form.rising(best):
        fix = "add runs of other sizes, or fit a power law of one quantity"
        raise DataError(f"fit: the loss does not fall with {wrong} (exponent not positive; {fix})")
    law = form.law(best)

    def again(drawn: Runs) -> JointLaw | None:
        if min(len(np.unique(drawn.params)), len(np.unique(drawn.tokens))) < 3:
            return None
        try:
            return form.law(_descend(form, best, drawn, delta)[0])
        except (FloatingPointError, ValueError):
            return None

    draws: list[JointLaw] = resampled(runs, again, resamples, seed, tell)
    names: dict[str, Callable[[Any], float]] = {name: _reader(name) for name in (*form.names, "a")}
    estimates = {
        name: estimate(read(law), np.array([read(d) for d in draws]), len(runs), P)
        for name, read in names.items()
    }
    residuals = log_L - np.log(law(runs.params, runs.tokens))
    noise = math.sqrt(float((residuals**2).sum()) / (len(runs) - P))
    return JointFit(law, estimates, residuals, draws, noise, len(runs) - P)


def _reader(name: str) -> Callable[[Any], float]:
    return lambda law: float(getattr(law, name))


def _descend(form: _Form, start: Floats, runs: Runs, delta: float) -> tuple[Floats, float]:
    """The lowest point of the Huber loss that is reached from `start`, and the loss there."""
    log_N, log_D, log_L = np.log(runs.params), np.log(runs.tokens), np.log(runs.loss)
    # A coarse delta first: where nearly all runs count by their distance the valley has a sharp, crooked floor.
    for rough in (30 * delta, delta):
        start, cost = least_squares(
            lambda t: form.predict(t, log_N, log_D)[0] - log_L,
            start,
            jac=lambda t: form.predict(t, log_N, log_D)[1],
            loss="huber",
            f_scale=rough,
            x_scale="jac",
            xtol=1e-12,
            ftol=1e-12,
            gtol=1e-12,
            max_nfev=400,
        )
    return start, cost


def _huber(r: Floats, delta: float) -> Floats:
    """r²/2 up to delta, then delta (|r| - delta/2)"""
    size = np.abs(r)
    return np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))
