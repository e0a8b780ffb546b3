"""Scaling laws: loss as a function of parameters, tokens and compute, and what follows from one.

`power` is a law in one quantity, `joint` in parameters and tokens; `published` holds the constants of papers;
`allocation` splits a budget, `comparison` compares methods, `capability` goes from loss to what a model can do.
"""

from chainrule.scaling.laws.allocation import (
    Allocation,
    chinchilla,
    data_limited,
    optimal,
    training_flops,
    with_inference,
)
from chainrule.scaling.laws.joint import Additive, Unified
from chainrule.scaling.laws.power import PowerLaw

__all__ = [
    "Additive",
    "Allocation",
    "PowerLaw",
    "Unified",
    "chinchilla",
    "data_limited",
    "optimal",
    "training_flops",
    "with_inference",
]
