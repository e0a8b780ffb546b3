"""The loss to expect at a size that was not trained, with its interval, and how far beyond the data it is."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from chainrule.errors import ChainruleWarning
from chainrule.random import generator
from chainrule.scaling.fits.bootstrap import Estimate
from chainrule.scaling.fits.joint import JointFit
from chainrule.scaling.fits.power import PowerFit, predicted
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.laws.power import Floats, decades

FAR = 1.0  # decades beyond the largest run that a prediction may go


class Prediction(NamedTuple):
    """A loss, and whether it is one that the data support."""

    loss: Estimate
    decades: float
    """Beyond the largest run; 0 within the data"""

    @property
    def speculation(self) -> bool:
        """More than a decade beyond the data: nobody knows whether the law holds there."""
        return self.decades > FAR + 1e-9


def predict_power(fit: PowerFit, x: float) -> Prediction:
    """By a power law; warns beyond a decade"""
    loss = (
        _from_draws(fit.law(x).item(), np.array([d(x).item() for d in fit.draws]), fit.noise)
        if fit.draws
        else (predicted(fit, x))
    )
    return _told(Prediction(loss, max(0.0, decades(x / fit.x.max()).item())))


def predict(fit: JointFit, runs: Runs, params: float, tokens: float) -> Prediction:
    """By a law in parameters and tokens; warns beyond a decade of compute, or of either of the two"""
    value = fit.law(params, tokens).item()
    draws = np.array([law(params, tokens).item() for law in fit.draws])
    beyond = [
        decades(wanted / known.max()).item()
        for wanted, known in ((params, runs.params), (tokens, runs.tokens))
    ]
    loss = _from_draws(value, draws, float(fit.residuals.std(ddof=1)))
    return _told(Prediction(loss, max(0.0, *beyond)))


def _from_draws(value: float, draws: Floats, noise: float) -> Estimate:
    """The interval of a new run: laws as likely as the fitted one, and runs scatter around a law"""
    scatter = generator("prediction", seed=0).normal(0.0, noise, len(draws))
    seen = draws * np.exp(scatter)
    low, high = np.quantile(seen, [0.025, 0.975])
    return Estimate(value, float(low), float(high), float(seen.std(ddof=1)))


def _told(found: Prediction) -> Prediction:
    if found.speculation:
        said = f"prediction {found.decades:.1f} decades beyond the largest run: speculation (at most one is safe)"
        warnings.warn(said, ChainruleWarning, stacklevel=3)
    return found
