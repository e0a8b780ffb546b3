"""Which objective goes with which architecture, and a clear word when they do not fit.

A decoder learns the next token and sees what came before; an encoder learns masked words or labels and sees both sides.
The other way round nothing would be learned: a model that sees the next token need not predict it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule.data import Masked, Pair, Segmented
from chainrule.errors import ConfigError
from chainrule.models import BERT, BERTClassifier, BERTPretraining, LanguageModel, Model, Seq2Seq


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


def check_causality(model: Model) -> None:
    """Refuse a language model that sees the token it predicts, and an encoder that sees only what came before.

    Tried out on two tokens: which outputs change with which token?
    """
    encoder = getattr(model, "bert", None)
    net = encoder if isinstance(encoder, BERT) else model if isinstance(model, LanguageModel) else None
    if net is None or min(model.config.block_size, model.config.vocab_size) < 2:
        return
    with model.answering(), np.errstate(all="ignore"):
        plain, other_first, other_last = (net(np.array([ids])).numpy()[0] for ids in ((0, 0), (1, 0), (0, 1)))
    looks_back = not np.array_equal(other_first[1], plain[1], equal_nan=True)
    looks_ahead = not np.array_equal(other_last[0], plain[0], equal_nan=True)
    learns = f"train: {type(model).__name__} learns"
    if net is model and looks_ahead:
        raise ConfigError(f"{learns} the next token and sees it (its attention needs a causal mask)")
    if net is encoder and looks_back and not looks_ahead:
        raise ConfigError(
            f"{learns} from both sides and sees only what came before (take the causal mask away)"
        )
