"""Models to decode with."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr
from chainrule.models import LanguageModel, make


def noisy(family: str, **sizes: Any) -> LanguageModel:
    """A new model with noise on every weight, those included that begin as 0 or 1."""
    cr.seed(0)
    model = make(family, **sizes, vocab_size=65)
    rng = np.random.default_rng(1)
    model.load({key: value + 0.1 * rng.normal(size=value.shape) for key, value in model.state().items()})
    return model.eval()
