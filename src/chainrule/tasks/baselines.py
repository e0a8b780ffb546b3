"""What counting alone achieves: the losses that a trained model must beat to have learned anything."""

from __future__ import annotations

import math

import numpy as np

from chainrule.models import Additive, NGram, Terminals
from chainrule.types import Ids


def count_baselines(train: Ids, validation: Ids, vocab_size: int) -> dict[str, float]:
    """Mean negative log-likelihood in nats per token on `validation`, of

    uniform    every token equally likely: ln V
    unigram    by how often a token occurs in `train`, each count one higher (so that none is impossible)
    bigram     the same, given the token before
    """
    losses = {"uniform": math.log(vocab_size)}
    text = Terminals(vocab_size, None)
    for order, name in ((1, "unigram"), (2, "bigram")):
        model = NGram.fit([train], order=order, vocab_size=vocab_size, ends=text, smoothing=Additive(1))
        contexts = validation[:-1, None][:, : order - 1]
        losses[name] = -float(np.log(model.probability(contexts, validation[1:])).mean())
    return losses
