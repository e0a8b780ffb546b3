"""Which objective goes with which architecture, and a clear word when they do not fit.

A decoder learns the next token and sees what came before; an encoder learns masked words or labels and sees both sides.
The other way round nothing would be learned: a model that sees the next token need not predict it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule.data import Masked, Pair, Segmented
from chainrule.errors import ConfigError
from chainrule.models import BERTClassifier, BERTPretraining, LanguageModel, Model, Seq2Seq


class Objective(NamedTuple):
    """What is learned, by which models, from which inputs, and what a prediction may see."""

    learns: str
    model: type[Model]
    inputs: type
    sees: str


OBJECTIVES = (
    Objective("the next token", LanguageModel, np.ndarray, "what came before"),
    Objective("masked words", BERTPretraining, Masked, "both sides"),
    Objective("labels", BERTClassifier, Segmented, "both sides"),
    Objective("translations", Seq2Seq, Pair, "the source, and what came before in the target"),
)


def check_objective(model: Model, inputs: Any) -> None:
    """Refuse a batch that is made for the objective of another architecture; what is in no table may pass."""
    of_model = next((o for o in OBJECTIVES if isinstance(model, o.model)), None)
    of_batch = next((o for o in OBJECTIVES if isinstance(inputs, o.inputs)), None)
    if of_model is None or of_batch is None or of_model is of_batch:
        return
    raise ConfigError(
        f"train: {type(model).__name__} learns {of_model.learns} and sees {of_model.sees}; the batches are for "
        f"{of_batch.learns}, with {of_batch.sees} in sight (take a {of_batch.model.__name__}, or other batches)"
    )
