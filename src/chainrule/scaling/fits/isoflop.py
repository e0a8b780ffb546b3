"""IsoFLOP slices: for each compute budget the size of the lowest loss, read off a parabola through its runs.

    L ≈ c_0 + c_1 ln N + c_2 (ln N)²  within a budget;     N_opt ∝ C^a, D_opt ∝ C^(1-a)  across budgets

(Hoffmann et al. 2022, second approach). The first approach, `envelope`, takes the runs that no cheaper run beats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from chainrule.errors import DataError
from chainrule.random import generator
from chainrule.scaling.fits.bootstrap import Estimate, Tell, check_enough, estimate
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.laws.joint import FLOPS
from chainrule.scaling.laws.power import Floats, PowerLaw, decades

FARTHEST = 25.0  # of ln N between the runs of a budget and its lowest point: beyond, the parabola is a line
GAP = 0.1  # decades of compute between two budgets, at least


class Valley(NamedTuple):
    """The runs of one budget and the lowest point of their parabola."""

    flops: float
    params: float
    loss: float
    inside: bool
    """The lowest point lies between the sizes that were tried."""
    curve: tuple[float, float, float]
    """c_2, c_1, c_0"""

    @property
    def tokens(self) -> float:
        return self.flops / (FLOPS * self.params)


@dataclass(frozen=True)
class IsoFlopFit:
    """The valleys, and how their lowest points move with the budget."""

    valleys: list[Valley]
    left_out: list[str]
    """Budgets without a valley, and why"""
    estimates: dict[str, Estimate]
    """a and b of N_opt ∝ C^a, D_opt ∝ C^b"""
    sizes: tuple[float, float]
    """ln N_opt = sizes[0] + sizes[1] ln C"""

    def best_params(self, C: float) -> float:
        """N_opt of a budget"""
        return math.exp(self.sizes[0] + self.sizes[1] * math.log(C))

    def frontier(self) -> PowerLaw:
        """The lowest loss as a power law of compute, by least squares on logarithms"""
        C, L = (np.log([getattr(v, name) for v in self.valleys]) for name in ("flops", "loss"))
        slope, first = np.polyfit(C, L, 1)
        if slope >= 0:
            raise DataError(
                "isoflop: the lowest loss does not fall with compute (train larger budgets longer)"
            )
        return PowerLaw.of_prefactor(math.exp(first), -slope)


def budgets(runs: Runs) -> list[Floats]:
    """Numbers of the runs of each budget, the smallest first: compute within a tenth of a decade belongs together"""
    order = np.argsort(runs.flops, kind="stable")
    steps = np.diff(decades(runs.flops[order]))
    return np.split(order, np.flatnonzero(steps > GAP) + 1)


def near_best(runs: Runs, within: float) -> Runs:
    """Of each budget the runs whose size is at most `within` times larger or smaller than the best one's

    A parabola is good near the lowest point only; far away the loss of models that are too large rises as a line.
    """
    if not within > 1:
        raise DataError(f"isoflop: sizes within a factor of {within:g} (must be above 1)")
    kept: list[int] = []
    for rows in budgets(runs):
        part = runs.take(rows)
        sizes = np.unique(part.params)
        best = sizes[np.argmin([part.loss[part.params == N].mean() for N in sizes])]
        kept += rows[np.abs(np.log(part.params / best)) <= math.log(within) + 1e-9].tolist()
    near = runs.take(np.sort(np.array(kept, int)))
    if len(near) == len(runs):
        return near
    said = (
        f"{len(runs) - len(near)} runs of sizes beyond {within:g} times the best of their budget, either way"
    )
    return replace(near, dropped=(*near.dropped, said))


def fit_isoflop(runs: Runs, *, resamples: int = 400, seed: int = 0, tell: Tell | None = None) -> IsoFlopFit:
    """Valleys of all budgets with three sizes or more, and the exponents, resampled within each budget"""
    runs.known("params", "flops")
    groups = budgets(runs)
    valleys, left_out = [], []
    for rows in groups:
        part = runs.take(rows)
        found = valley(part)
        if found is None or not found.inside:
            tried = len(np.unique(part.params))
            why = (
                f"{tried} sizes, at least three are needed"
                if tried < 3
                else "no lowest point between the sizes tried: add smaller or larger ones"
            )
            left_out.append(f"{np.median(part.flops):.3g} FLOPs: {why}")
        else:
            valleys.append(found)
    if len(valleys) < 2:
        why = "; ".join(left_out) or "one budget only"
        raise DataError(f"isoflop: {len(valleys)} budgets with a valley (must be at least 2): {why}")
    sizes = _line(valleys)
    draws = []
    for number in range(resamples):
        random = generator("isoflop", number, seed=seed)
        again = [valley(runs.take(np.sort(random.choice(rows, len(rows))))) for rows in groups]
        good = [v for v in again if v is not None and v.inside]
        if len(good) >= 2:
            draws.append(_line(good)[1])
        if tell:
            tell(number + 1, resamples)
    check_enough(len(draws), resamples)
    slopes, free = np.array(draws), 3 * len(groups) + 2
    a = estimate(sizes[1], slopes, max(len(runs), free + 1), free)
    return IsoFlopFit(valleys, left_out, {"a": a, "b": _complement(a)}, sizes)


def valley(runs: Runs) -> Valley | None:
    """The parabola through the runs of one budget; None without three sizes or if it has no lowest point"""
    if len(np.unique(runs.params)) < 3:
        return None
    u = np.log(runs.params)
    middle = float(u.mean())
    c2, c1, c0 = (float(c) for c in np.polyfit(u - middle, runs.loss, 2))
    if c2 <= 0 or abs(c1) > 2 * c2 * FARTHEST:
        return None
    lowest = -c1 / (2 * c2)
    N = math.exp(middle + lowest)
    inside = bool(runs.params.min() <= N <= runs.params.max())
    curve = (c2, c1 - 2 * c2 * middle, c0 - c1 * middle + c2 * middle**2)
    return Valley(float(np.median(runs.flops)), N, c0 - c1**2 / (4 * c2), inside, curve)


def envelope(runs: Runs) -> Runs:
    """The runs that no run of as much compute or less beats: the frontier of what is reached"""
    runs.known("flops")
    order = np.lexsort((runs.loss, runs.flops))
    best, kept = math.inf, []
    for row in order.tolist():
        if runs.loss[row] < best:
            best = float(runs.loss[row])
            kept.append(row)
    return runs.take(np.array(kept))


def _line(valleys: list[Valley]) -> tuple[float, float]:
    """ln N_opt against ln C: where it begins, and its slope"""
    C, N = (np.log([getattr(v, name) for v in valleys]) for name in ("flops", "params"))
    slope, first = np.polyfit(C, N, 1)
    return float(first), float(slope)


def _complement(a: Estimate) -> Estimate:
    return Estimate(1 - a.value, 1 - a.high, 1 - a.low, a.error)
