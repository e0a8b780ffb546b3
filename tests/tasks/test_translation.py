"""Texts in pairs: what is held back to evaluate on, and in which units."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainrule.data import PairCorpus
from chainrule.models import make
from chainrule.tasks.translation import TranslationTask

TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 64}
FEW = {"batch_size": 4, "limit": 8}


def test_a_few_pairs_to_judge_by_are_from_the_whole_file_and_so_are_their_bytes() -> None:
    pairs = [(f"s{i}", "a" if i < 200 else "é") for i in range(400)]  # the second half has two bytes a token
    some = TranslationTask.of(PairCorpus("some", "test", tuple(pairs)))
    model = make("seq2seq", **TINY, **some.sizes())
    batches = some.eval_batches(model, **FEW)
    targets = np.concatenate([row for _, rows in batches for row in rows])
    assert set(some.tokenizer.encode("aé")) <= set(targets)
    assert len(some.validation) > len(targets) / 2 == 8  # each has its letter and the end
    size = sum(len(some.tokenizer.decode(rows[:, 0]).encode()) for _, rows in batches)
    measured = some.measures(math.log(2), batches)["bits_per_byte"]
    assert measured == pytest.approx(len(targets) / size)
