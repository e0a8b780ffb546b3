"""What a GPT on a budget will reach on a text that nobody has trained on: a law over measured runs of many texts.

    bits = u - (u - p) σ₁ - (p - f q) σ₂,     σᵢ = 1 / (1 + (Cᵢ / C)^aᵢ),     f = F + G (10¹² / C)^½

u, p and q are the bits per byte that tables of single characters, of pairs and of five in a row reach on the text,
which take a second to count; C is the compute of the training, 6 N D. With little compute a GPT knows how often a
character occurs, from C₁ on what follows what, from C₂ on longer contexts; in the end it needs F times the bits of q.
The constants are fitted to the runs of `budget_runs.csv`, by least squares of ln bits. Texts differ: some are learned
sooner (by a factor e^τ in compute), some better (by a factor e^σ); both spreads are estimated from what the law leaves,
and beyond the runs the uncertainty of the constants adds to them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.autograd.types import Array
from chainrule.scaling.laws.joint import FLOPS

TABLE = "budget_runs.csv"  # written by `python -m benchmarks.lessons.budget fit`
# ln C₁, a₁, ln C₂, a₂, F, G before any of the runs, and how far they may be off. F and G are those of runs of up to
# 10¹³ operations that the table has none of: 0.85 + 0.27 (10¹² / C)^½ times the bits of five-grams.
START = (math.log(5e10), 2.0, math.log(2e11), 2.0, 0.85, 0.27)
SURE = (1.0, 0.7, 1.0, 0.7, 0.08, 0.15)
NOISE = 0.07  # of ln bits, about, against which SURE is weighed
UNIT = 1e12  # of compute, in f
LEAST = 1e-3  # bits per byte
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
"""97.5 % points of Student's t for 1, 2, ... texts beyond the first"""


class Run(NamedTuple):
    """A run, and how hard its text is."""

    text: str
    single: float
    """Bits per byte of counts of single characters"""
    pair: float
    longest: float
    compute: float
    bits: float
    """Per byte of the validation text"""


@dataclass(frozen=True)
class Outlook:
    """The law with its constants and spreads."""

    constants: tuple[float, ...]
    sooner: float
    """τ"""
    better: float
    """σ"""
    covariance: Array
    """Of the constants"""
    texts: int

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Outlook:
        """Fitted to runs"""
        counts = np.array([run[1:4] for run in runs])
        compute, bits = (np.array([getattr(run, name) for run in runs]) for name in ("compute", "bits"))
        constants = _least_squares(counts, compute, np.log(bits))
        left = np.log(bits) - np.log(law(constants, counts, compute))
        left *= math.sqrt(len(runs) / max(1, len(runs) - len(START)))
        slopes = _slopes(constants, counts, compute)
        texts = len({run.text for run in runs})
        J = _jacobian(constants, counts, compute)
        unknown = np.linalg.inv(J.T @ J + np.diag((NOISE / np.array(SURE)) ** 2))
        covariance = unknown * left.var() * len(runs) / texts  # runs of one text are off together
        return cls(tuple(constants.tolist()), *_spreads(left, slopes), covariance, texts)

    def expected(self, counts: tuple[float, float, float], compute: float, pace: float = 1.0) -> float:
        """Bits per byte after so much compute"""
        return float(law(self.constants, np.array([counts]), np.array([compute * pace]))[0])

    def range(
        self, counts: tuple[float, float, float], compute: float, pace: float = 1.0
    ) -> tuple[float, float]:
        """From and to: 95 % of new texts end inside, on a machine that is up to `pace` times faster or slower"""
        middle = self.expected(counts, compute)
        at = np.array([counts]), np.array([compute])
        slope, g = float(_slopes(self.constants, *at)[0]), _jacobian(self.constants, *at)[0]
        unknown = math.sqrt(max(0.0, float(g @ self.covariance @ g)))
        t = STUDENT[min(self.texts - 1, len(STUDENT)) - 1]
        half = t * math.hypot(self.better, slope * self.sooner, unknown)
        fast, slow = (math.log(self.expected(counts, compute, p) / middle) for p in (pace, 1 / pace))
        return middle * math.exp(-math.hypot(half, fast)), middle * math.exp(math.hypot(half, slow))


def law(constants: npt.ArrayLike, counts: Array, compute: Array) -> Array:
    """counts (n, 3), compute (n,) -> bits (n,)"""
    first, steep, second, steeper, floor, excess = np.asarray(constants, float)
    u, p, q = counts.T
    pairs = _sigmoid(steep * (np.log(compute) - first))
    longer = _sigmoid(steeper * (np.log(compute) - second))
    f = floor + excess * np.sqrt(UNIT / compute)
    return np.maximum(u - (u - p) * pairs - (p - f * q) * longer, LEAST)


def _sigmoid(z: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(z, -50, 50))))


def _slopes(constants: npt.ArrayLike, counts: Array, compute: Array) -> Array:
    """d ln bits / d ln C (n,), by a central difference"""
    h = 1e-4
    up, down = (np.log(law(constants, counts, compute * math.exp(step))) for step in (h, -h))
    return np.asarray((up - down) / (2 * h))


def _jacobian(constants: npt.ArrayLike, counts: Array, compute: Array) -> Array:
    """d ln bits / d constants (n, 6), by central differences"""
    c, h = np.array(constants), 1e-5
    logs = [
        np.log(law(c + step, counts, compute)) - np.log(law(c - step, counts, compute))
        for step in h * np.eye(len(c))
    ]
    return np.stack(logs, axis=1) / (2 * h)


def _least_squares(counts: Array, compute: Array, target: Array) -> Array:
    """The constants of the smallest Σ (ln law - ln bits)², not far from START, by Levenberg and Marquardt's steps"""
    weight = NOISE / np.array(SURE)

    def left(constants: Array) -> Array:
        off = np.log(law(constants, counts, compute)) - target
        return np.concatenate([off, weight * (constants - np.array(START))])

    found, damping = np.array(START), 1e-2
    for _ in range(200):
        r = left(found)
        J = np.concatenate([_jacobian(found, counts, compute), np.diag(weight)])
        A, b = J.T @ J, J.T @ r
        step = np.linalg.solve(A + damping * np.diag(np.diag(A) + 1e-9), -b)
        if ((left(found + step)) ** 2).sum() < (r**2).sum():
            found, damping = found + step, damping / 3
            if np.abs(step).max() < 1e-9:
                break
        else:
            damping *= 4
            if damping > 1e12:
                break
    return found


def _spreads(left: Array, slopes: Array) -> tuple[float, float]:
    """τ and σ of the largest likelihood of N(0, σ² + (slope τ)²), from a grid"""
    best, found = -math.inf, (0.0, 0.0)
    for sooner in np.linspace(0, 1, 51):
        for better in np.linspace(0.005, 0.3, 60):
            variance = better**2 + (slopes * sooner) ** 2
            likelihood = float(-(left**2 / variance + np.log(variance)).sum())
            if likelihood > best:
                best, found = likelihood, (float(sooner), float(better))
    return found


def read(text: str) -> list[Run]:
    """Runs from a table as `benchmarks.lessons.budget` writes it"""
    return [
        Run(
            row["text"], float(row["single"]), float(row["pair"]), float(row["longest"]),
            FLOPS * float(row["params"]) * float(row["tokens"]), float(row["bits_per_byte"]),
        )
        for row in csv.DictReader(text.splitlines())
    ]  # fmt: skip


@cache
def outlook() -> Outlook:
    """The law of the runs that come with the package"""
    return Outlook.of(read((files("chainrule.scaling") / TABLE).read_text(encoding="utf-8")))
