"""A new head on the body of a model that has learned: which bodies fit which models, and the new model."""

from __future__ import annotations

from typing import Any

from chainrule.models.bert import heads as bert
from chainrule.models.model import Model
from chainrule.models.reward import REWARDS, Reward


def fits_head(trained: Model, kind: type[Model]) -> bool:
    """There is a body in `trained` that a model of this kind can take."""
    if issubclass(kind, Reward):
        return type(trained) in REWARDS and REWARDS[type(trained)][0] is kind
    return bert.fits_head(trained, kind)


def with_head(trained: Model, kind: type[Model], **sizes: Any) -> Model:
    """A new model of another kind on a copy of the body of `trained`; `sizes` are fields of the new config."""
    return Reward.on(trained, **sizes) if issubclass(kind, Reward) else bert.fine_tune(trained, kind, **sizes)
