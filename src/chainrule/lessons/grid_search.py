"""Trying settings on the validation loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from chainrule.errors import ConfigError


@dataclass(frozen=True)
class Trial:
    """One combination of settings and what came of it."""

    settings: dict[str, Any]
    validation: float


def grid_search(run: Callable[..., float], **choices: Sequence[Any]) -> list[Trial]:
    """Call `run` with every combination of the choices; best first, what diverged last.

    `run` trains on the training documents and returns the loss on the validation documents. It never reads the
    test documents: they are for the one model that is chosen here.

    >>> from chainrule.lessons.grid_search import grid_search
    >>> [t.settings for t in grid_search(lambda lr, width: abs(lr - 0.1) / width, lr=[0.1, 1.0], width=[8])]
    [{'lr': 0.1, 'width': 8}, {'lr': 1.0, 'width': 8}]
    """
    if not all(len(values) for values in choices.values()):
        raise ConfigError(f"grid_search: choices {choices} (each must have at least one value)")
    combinations = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    trials = [Trial(settings, float(run(**settings))) for settings in combinations]
    return sorted(trials, key=lambda t: math.inf if math.isnan(t.validation) else t.validation)
