"""What the training and the validation loss together say about a model."""

from __future__ import annotations

import math
from typing import Literal

from chainrule.doctor import limits
from chainrule.errors import DataError

Verdict = Literal["underfit", "ok", "overfit"]


def verdict(
    train: float, validation: float, *, equal: float = limits.UNDERFIT_GAP, apart: float = limits.OVERFIT_GAP
) -> Verdict:
    """underfit: both losses alike, so a larger model could learn more. overfit: the training loss far below.

    The gap is a fraction of the validation loss: up to `equal` they are alike, above `apart` far apart.

    >>> from chainrule.doctor.verdict import verdict
    >>> verdict(2.45, 2.46), verdict(2.0, 2.1), verdict(1.2, 2.3)
    ('underfit', 'ok', 'overfit')
    """
    if not (math.isfinite(train) and math.isfinite(validation) and validation > 0):
        raise DataError(f"verdict: losses {train} and {validation} (must be finite, validation above 0)")
    gap = (validation - train) / validation
    if gap <= equal:
        return "underfit"
    return "overfit" if gap > apart else "ok"
