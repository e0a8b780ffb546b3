"""Laws as papers fitted them, on their data and with their tokenizers: shapes carry over, constants do not."""

from __future__ import annotations

from chainrule.scaling.laws.joint import Additive, Unified
from chainrule.scaling.laws.power import PowerLaw

PF_DAY = 1e15 * 86_400  # FLOPs of a petaflop/s for a day

# Kaplan et al. 2020, on web text; N without embeddings
KAPLAN_N = PowerLaw(8.8e13, 0.076)
KAPLAN_D = PowerLaw(5.4e13, 0.095)
KAPLAN_C = PowerLaw(3.1e8 * PF_DAY, 0.050)  # the paper gives 3.1e8 PF-days
KAPLAN = Unified(8.8e13, 5.4e13, 0.076, 0.095)
KAPLAN_FRONTIER = (
    0.73  # exponent of N_opt along their compute frontier, a fit of its own: their law above has 0.556
)

# Hoffmann et al. 2022, third approach; and the same data fitted again by Besiroglu et al. 2024
CHINCHILLA = Additive(E=1.69, A=406.4, B=410.7, alpha=0.34, beta=0.28)
CHINCHILLA_REFITTED = Additive(E=1.8172, A=482.01, B=2085.43, alpha=0.3478, beta=0.3658)
