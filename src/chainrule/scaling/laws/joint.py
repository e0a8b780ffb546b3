"""Laws in two quantities, parameters N and tokens D.

    unified    L = ((N_c / N)^(α_N/α_D) + D_c / D)^α_D                (Kaplan et al. 2020)
    additive   L = E + A / N^α + B / D^β                              (Hoffmann et al. 2022, "Chinchilla")

They are different functions: constants of one mean nothing in the other. Under C = 6 N D both have a closed minimum,
N_opt ∝ C^a with a = α_D / (α_N + α_D), in the other notation β / (α + β).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chainrule.scaling.laws.power import Floats, PowerLaw
from chainrule.validate import Check

FLOPS = 6.0  # of a training, per parameter and token: two forward, four backward


@dataclass(frozen=True)
class Unified:
    """Too few parameters act like too little data: both deficits are added, then raised to α_D."""

    N_c: float
    D_c: float
    alpha_N: float
    alpha_D: float

    def __post_init__(self) -> None:
        Check("unified law", self).positive("N_c", "D_c", "alpha_N", "alpha_D")

    def __call__(self, N: npt.ArrayLike, D: npt.ArrayLike) -> Floats:
        """N (...), D (...) -> loss (...); either may be infinite"""
        N, D = np.asarray(N, float), np.asarray(D, float)
        return np.asarray(((self.N_c / N) ** (self.alpha_N / self.alpha_D) + self.D_c / D) ** self.alpha_D)

    @property
    def a(self) -> float:
        """N_opt ∝ C^a"""
        return self.alpha_D / (self.alpha_N + self.alpha_D)

    def best_params(self, C: npt.ArrayLike) -> Floats:
        """C (...) -> the N of the lowest loss under C = 6 N D (...): (p N_c^p C / (6 D_c))^(1/(1+p)), p = α_N/α_D"""
        p = self.alpha_N / self.alpha_D
        return np.asarray((p * self.N_c**p * np.asarray(C, float) / (FLOPS * self.D_c)) ** (1 / (1 + p)))


@dataclass(frozen=True)
class Additive:
    """What the text leaves open, what too few parameters cost, and what too little data costs."""

    E: float
    """nats that no model goes below"""
    A: float
    B: float
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        check = Check("additive law", self)
        check.positive("A", "B", "alpha", "beta")
        check.not_negative("E")

    def __call__(self, N: npt.ArrayLike, D: npt.ArrayLike) -> Floats:
        """N (...), D (...) -> loss (...); either may be infinite"""
        N, D = np.asarray(N, float), np.asarray(D, float)
        return np.asarray(self.E + self.A / N**self.alpha + self.B / D**self.beta)

    @property
    def a(self) -> float:
        """N_opt ∝ C^a"""
        return self.beta / (self.alpha + self.beta)

    def best_params(self, C: npt.ArrayLike) -> Floats:
        """C (...) -> the N of the lowest loss under C = 6 N D (...): G (C/6)^a, G = (α A / (β B))^(1/(α+β))"""
        G = (self.alpha * self.A / (self.beta * self.B)) ** (1 / (self.alpha + self.beta))
        return np.asarray(G * (np.asarray(C, float) / FLOPS) ** self.a)

    def frontier(self) -> PowerLaw:
        """The lowest loss for each compute C: E + (C_c / C)^γ with γ = α β / (α + β)"""
        gamma = self.alpha * self.beta / (self.alpha + self.beta)
        N = self.best_params(FLOPS).item()  # at C/6 = 1: D = 1/N
        reducible = self.A / N**self.alpha + self.B * N**self.beta
        return PowerLaw(float(FLOPS * reducible ** (1 / gamma)), gamma, self.E)


JointLaw = Unified | Additive
