"""The steps of word2vec, derived by hand, against plain gradient descent on its loss by PyTorch's autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from chainrule.random import key
from chainrule.train.word_vectors.sampling import AliasTable, random_words
from chainrule.train.word_vectors.update import Passage, learn, reference
from tests.battery.checks import distance

V, C, N = 11, 6, 60


def passage(average: bool) -> Passage:
    """A text with two boundaries, one window after the other."""
    ids = np.random.default_rng(0).integers(0, V, size=N).astype(np.int32)
    ids[[20, 41]] = -1
    table = AliasTable.of(np.full(V, 1 / V))
    return Passage(
        ids, 0, N, table, key("peer", 0, seed=1), window=3, negatives=4, average=average, lr=0.2, count=1, lanes=1
    )  # fmt: skip


def window_loss(
    input: Tensor, output: Tensor, around: list[int], targets: list[int], average: bool
) -> Tensor:
    """- ln σ(x · y) for the center, the first target, - ln σ(- x · y) for the others, of every input x"""
    x = input[around].mean(0, keepdim=True) if average else input[around]
    scores = x @ output[targets].T  # (M, n)
    sign = torch.tensor([1.0] + [-1.0] * (len(targets) - 1), dtype=scores.dtype)
    return -F.logsigmoid(sign * scores).sum()


def descended(tables: np.ndarray, s: Passage) -> np.ndarray:
    """Both tables (2, V, C) after a step of gradient descent for each window, its words found one by one."""
    input, output = (torch.tensor(table, requires_grad=True) for table in tables)
    optimizer = torch.optim.SGD([input, output], lr=s.lr)
    words = random_words(s.key, 0, N, s.negatives)
    for center, (first, *rest) in enumerate(words.tolist()):
        around = neighbors(s.ids.tolist(), center, 1 + first * s.window // 2**32)
        if not around:
            continue
        drawn = s.noise.draw(np.array(rest, np.uint32)).tolist()
        word = int(s.ids[center])
        optimizer.zero_grad()
        window_loss(input, output, around, [word, *(d for d in drawn if d != word)], s.average).backward()
        optimizer.step()
    return np.stack([input.detach().numpy(), output.detach().numpy()])


def neighbors(ids: list[int], center: int, reach: int) -> list[int]:
    """Outwards from the center on either side, until a boundary."""
    found: list[int] = []
    for side in (-1, 1):
        for far in range(1, reach + 1):
            place = center + side * far
            if not 0 <= place < len(ids) or -1 in (ids[center], ids[place]):
                break
            found.append(ids[place])
    return found


@pytest.mark.parametrize("average", [False, True], ids=["skip-gram", "CBOW"])
def test_the_steps_are_gradient_descent(average: bool) -> None:
    tables = np.random.default_rng(1).normal(size=(2, V, C))
    s = passage(average)
    want = descended(tables, s)
    assert distance(want, tables) > 0.05, "the vectors must have moved for the comparison to mean anything"
    for learned, dtype, tolerance in ((reference, np.float64, 1e-12), (learn, np.float32, 1e-5)):
        input, output = tables.astype(dtype)
        learned(input, output, s)
        assert distance(np.stack([input, output]), want) <= tolerance
