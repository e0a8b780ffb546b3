"""Laws fitted to measured runs, with intervals, and a verdict on how far they can be trusted.

`table` reads runs; `power`, `joint` and `isoflop` fit; `bootstrap` resamples the runs; `verdict` says in words what
the numbers do not; `predict` goes beyond the data, and says how far.
"""

from chainrule.scaling.fits.bootstrap import Estimate
from chainrule.scaling.fits.isoflop import IsoFlopFit, envelope, fit_isoflop
from chainrule.scaling.fits.joint import JointFit, fit_additive, fit_unified
from chainrule.scaling.fits.power import PowerFit, fit_power, fit_power_with_floor
from chainrule.scaling.fits.predict import Prediction, predict, predict_power
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.fits.verdict import Doubt, Remark, remarks

__all__ = [
    "Doubt", "Estimate", "IsoFlopFit", "JointFit", "PowerFit", "Prediction", "Remark", "Runs", "envelope",
    "fit_additive", "fit_isoflop", "fit_power", "fit_power_with_floor", "fit_unified", "predict", "predict_power",
    "remarks"
]  # fmt: skip
