"""Runs of a law that is known, with noise."""

from __future__ import annotations

import numpy as np

from chainrule.scaling.fits import Runs
from chainrule.scaling.laws.joint import FLOPS, JointLaw
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED


def planted(n: int = 60, seed: int = 0, noise: float = 0.01, law: JointLaw = CHINCHILLA_REFITTED) -> Runs:
    """n runs over three decades of size and four of compute"""
    rng = np.random.default_rng(seed)
    N, C = 10 ** rng.uniform(7, 10.2, n), 10 ** rng.uniform(17.5, 21.5, n)
    L = law(N, C / (FLOPS * N)) * np.exp(rng.normal(0, noise, n))
    return Runs.of(L, params=N, flops=C)
