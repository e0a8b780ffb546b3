"""What counting alone achieves: the losses that a trained model must beat to have learnt anything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer[Any]]


def count_baselines(train: Ids, validation: Ids, vocab_size: int) -> dict[str, float]:
    """Mean negative log-likelihood in nats per token on `validation`, of

    uniform    every token equally likely: ln V
    unigram    by how often a token occurs in `train`, each count one higher (so that none is impossible)
    bigram     the same, given the token before
    """
    V = vocab_size
    singles = np.bincount(train, minlength=V) + 1.0  # (V,)
    pairs = np.bincount(train[:-1].astype(np.int64) * V + train[1:], minlength=V * V).reshape(V, V) + 1.0
    unigram = np.log(singles / singles.sum())  # (V,)
    bigram = np.log(pairs / pairs.sum(axis=1, keepdims=True))  # (V, V), a row per token before
    return {
        "uniform": math.log(V),
        "unigram": -float(unigram[validation[1:]].mean()),
        "bigram": -float(bigram[validation[:-1], validation[1:]].mean()),
    }
