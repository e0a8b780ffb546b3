"""The loss to expect at a size that was not trained, with its interval, and how far beyond the data it is."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from chainrule.errors import ChainruleWarning
from chainrule.random import generator
from chainrule.scaling.fits.bootstrap import Estimate, tail_of
from chainrule.scaling.fits.joint import JointFit
from chainrule.scaling.fits.power import PowerFit, predicted
from chainrule.scaling.fits.table import Runs
from chainrule.scaling.laws.joint import FLOPS
from chainrule.scaling.laws.power import Floats, decades

FAR = 1.0  # decades outside of the data that a prediction may go
SCATTERED = 20  # runs drawn around each law


class Prediction(NamedTuple):
    """A loss, and whether it is one that the data support."""

    loss: Estimate
    decades: float
    """Outside of the data; 0 within them"""

    @property
    def speculation(self) -> bool:
        """More than a decade beyond the data: nobody knows whether the law holds there."""
        return self.decades > FAR + 1e-9


def predict_power(fit: PowerFit, x: float) -> Prediction:
    """By a power law; warns beyond a decade"""
    if not fit.draws:
        return _told(Prediction(predicted(fit, x), outside(x, fit.x)))
    draws = np.array([law(x).item() for law in fit.draws])
    loss = _from_draws(fit.law(x).item(), draws, fit.noise, fit.free)
    return _told(Prediction(loss, outside(x, fit.x)))


def predict(fit: JointFit, runs: Runs, params: float, tokens: float) -> Prediction:
    """By a law in parameters and tokens; warns a decade outside of the data in either of them, or in compute"""
    draws = np.array([law(params, tokens).item() for law in fit.draws])
    loss = _from_draws(fit.law(params, tokens).item(), draws, fit.noise, fit.free)
    far = (
        outside(params, runs.params),
        outside(tokens, runs.tokens),
        outside(params * tokens, runs.flops / FLOPS),
    )
    return _told(Prediction(loss, max(far)))


def outside(x: float, known: Floats) -> float:
    """How many decades x is above the largest or below the smallest; 0 between them"""
    return max(0.0, decades(x / known.max()).item(), decades(known.min() / x).item())


def _from_draws(value: float, draws: Floats, noise: float, free: int) -> Estimate:
    """The interval of a new run: laws as likely as the fitted one, and runs scatter around a law"""
    tail = tail_of(free)
    scatter = generator("prediction", seed=0).normal(0.0, noise, (SCATTERED, len(draws)))
    seen = (draws * np.exp(scatter)).reshape(-1)
    low, high = np.quantile(seen, [tail, 1 - tail])
    return Estimate(value, float(low), float(high), float(seen.std(ddof=1)))


def _told(found: Prediction) -> Prediction:
    if found.speculation:
        said = (
            f"prediction {found.decades:.1f} decades outside of the data: speculation (at most one is safe)"
        )
        warnings.warn(said, ChainruleWarning, stacklevel=3)
    return found
