"""How far a fit can be trusted, in words. Each remark has a code; nothing reads the sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

import numpy as np

from chainrule.scaling.fits.bootstrap import Estimate
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.laws.power import Floats, decades

DECADES = 2.0  # of size that an exponent needs
TOGETHER = 0.98  # correlation of ln N and ln D above which their effects cannot be told apart
WIDE = 0.3  # width of the interval of a, of which 0.5 is the middle
END = 0.25  # share of the runs that count as an end
FAR = 4.0  # robust standard deviations that make an outlier
CURVED = 4.0  # standard errors by which an end may be off
SLACK = 1e-6  # of a law without noise, whose interval is a point
OFF = 0.05  # relative error of the largest run when it is left out


class Doubt(Enum):
    """What is remarkable."""

    FEW_DECADES = "few_decades"
    SMALL_END = "small_end"
    LARGE_END = "large_end"
    INSEPARABLE = "inseparable"
    WIDE_EXPONENT = "wide_exponent"
    FLOOR_UNKNOWN = "floor_unknown"
    OUTLIER = "outlier"
    LARGEST_OFF = "largest_off"


class Remark(NamedTuple):
    """A doubt about a fit, and what would settle it."""

    code: Doubt
    text: str

    def __str__(self) -> str:
        return self.text


def remarks(
    runs: Runs, sizes: Mapping[str, Floats], residuals: Floats, estimates: Mapping[str, Estimate]
) -> list[Remark]:
    """What is doubtful; `sizes` are the quantities that the law is in."""
    found = []
    for name, x in sizes.items():
        span = decades(x.max() / x.min()).item()
        if span < DECADES:
            said = (
                f"{name} span {span:.1f} decades, less than two: the exponent is unreliable (add other sizes)"
            )
            found.append(Remark(Doubt.FEW_DECADES, said))
        found += ends(name, x, residuals)
    if len(sizes) == 2:
        N, D = sizes.values()
        found += _separable(N, D, estimates)
    found += _floor(runs, estimates)
    found += outliers(residuals)
    return found


def ends(name: str, x: Floats, residuals: Floats) -> list[Remark]:
    """Runs at an end of the sizes that the others, by a straight line, do not expect: the law bends there"""
    n = len(x)
    k = max(2, round(END * n))
    if n - k < 5:
        return []
    order, u = np.argsort(x, kind="stable"), np.log(x)
    found = []
    for code, end in ((Doubt.SMALL_END, order[:k]), (Doubt.LARGE_END, order[-k:])):
        rest = np.setdiff1d(order, end)
        if len(np.unique(u[rest])) < 3:
            continue
        line = np.polyfit(u[rest], residuals[rest], 1)
        off = residuals - np.polyval(line, u)
        noise = math.sqrt(float((off[rest] ** 2).sum()) / (n - k - 2))
        mean, middle = float(off[end].mean()), float(u[rest].mean())
        spread = float(((u[rest] - middle) ** 2).sum())
        error = noise * math.sqrt(1 / k + 1 / (n - k) + (float(u[end].mean()) - middle) ** 2 / spread)
        if abs(mean) > max(CURVED * error, SLACK):
            found.append((abs(mean) / max(error, 1e-300), code, mean))
    if not found:
        return []
    # What is wrong at one end may bend the line at the other: the worse end counts.
    _, code, mean = max(found, key=lambda each: each[0])
    which, fix = {
        Doubt.SMALL_END: (
            "smallest",
            "they may be trained too briefly to count: leave them out and fit again",
        ),
        Doubt.LARGE_END: (
            "largest",
            "the law bends, or they see text again: fit a floor, or bring more text",
        ),
    }[code]
    said = f"the {k} runs of the {which} {name} lie {abs(mean):.1%} {'above' if mean > 0 else 'below'} what the others"
    return [Remark(code, f"{said} lead to ({fix})")]


def _separable(N: Floats, D: Floats, estimates: Mapping[str, Estimate]) -> list[Remark]:
    found = []
    correlation = abs(float(np.corrcoef(np.log(N), np.log(D))[0, 1]))
    if correlation > TOGETHER:
        said = (
            f"params and tokens rise together ({correlation:.3f}): the data cannot separate alpha from beta"
        )
        found.append(Remark(Doubt.INSEPARABLE, f"{said} (add runs of one size on other amounts of text)"))
    a = estimates.get("a")
    if a is not None and a.high - a.low > WIDE:
        said = f"the best size for a budget is C^{a.value:.2f}, from C^{a.low:.2f} to C^{a.high:.2f}: it is not known"
        found.append(Remark(Doubt.WIDE_EXPONENT, f"{said} (add budgets)"))
    return found


def _floor(runs: Runs, estimates: Mapping[str, Estimate]) -> list[Remark]:
    floor, lowest = estimates.get("E"), float(runs.loss.min())
    if floor is None or floor.high - floor.low < 0.5 * lowest:
        return []
    said = f"the floor is between {floor.low:.2f} and {floor.high:.2f} nats: the runs are too far above it to tell"
    return [Remark(Doubt.FLOOR_UNKNOWN, f"{said} (predictions far beyond the data depend on it)")]


def outliers(residuals: Floats) -> list[Remark]:
    """Runs farther from the law than four robust standard deviations (1.4826 times the median distance)"""
    middle = float(np.median(residuals))
    spread = 1.4826 * float(np.median(np.abs(residuals - middle)))
    far = np.flatnonzero(np.abs(residuals - middle) > max(FAR * spread, SLACK))
    if not len(far):
        return []
    listed = ", ".join(f"{row + 1}" for row in far[:5].tolist()) + (", …" if len(far) > 5 else "")
    count = f"{len(far)} of {len(residuals)} runs {'is' if len(far) == 1 else 'are'}"
    said = f"{count} more than four robust standard deviations off: rows {listed} of those used"
    return [
        Remark(Doubt.OUTLIER, f"{said} (look at them; --drop-highest leaves out runs of the highest loss)")
    ]


def largest_off(measured: float, predicted: Estimate) -> list[Remark]:
    """The largest run, predicted by the others"""
    error = predicted.value / measured - 1
    near = predicted.low * (1 - SLACK) <= measured <= predicted.high * (1 + SLACK)
    if abs(error) <= OFF and near:
        return []
    said = (
        f"without the largest run the law predicts {predicted} for it, measured {measured:.4g} ({error:+.1%})"
    )
    return [Remark(Doubt.LARGEST_OFF, f"{said}: beyond the data it will be off further")]
