"""One passage of text through word2vec: by the kernel, or by NumPy, which is also the statement of what it does.

A round is `lanes` chunks of `count` centers. Each chunk goes through its windows one after the other, on copies of the
rows of both tables that it needs; all chunks of a round start from the same tables, and when all are done their changes
are added in order. Nothing depends on who computes a chunk: any number of threads gives the same bits.

A window is one step: its M inputs x (the words around the center; in CBOW their mean), its targets y (the center and
the negatives, drawn once for the whole window) and G = lr (label - σ(x yᵀ)) give x += G y, y += Gᵀ x.  [PR.5] [PR.6]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chainrule import native, ops
from chainrule.train.word_vectors.sampling import AliasTable, random_words
from chainrule.types import Array


@dataclass(frozen=True)
class Passage:
    """The centers first .. last of a text and how to learn from them."""

    ids: npt.NDArray[np.int32]  # the text; -1 is a boundary
    first: int
    last: int
    noise: AliasTable
    key: tuple[int, ...]  # names the random words of this text
    window: int
    negatives: int
    average: bool  # the mean of the window is the input: CBOW
    lr: float
    count: int  # centers per chunk
    lanes: int  # chunks per round


def learn(input: Array, output: Array, s: Passage) -> None:
    """Change the tables (V, C) in place, with the kernel if it is there."""
    if not native.available():
        return reference(input, output, s)
    arguments = (s.key, s.first, s.last, s.window, s.negatives, s.average, s.lr, s.count, s.lanes)
    native.kernels().word2vec_train(input, output, s.ids, s.noise.accept, s.noise.other, *arguments)


def reference(input: Array, output: Array, s: Passage) -> None:
    """The same in NumPy, in the dtype of the tables."""
    for start in range(s.first, s.last, s.count * s.lanes):
        stop = min(start + s.count * s.lanes, s.last)
        chunks = [(a, min(a + s.count, stop)) for a in range(start, stop, s.count)]
        copies = [_chunk(input.copy(), output.copy(), s, *chunk) for chunk in chunks]
        changes = [(x - input, y - output) for x, y in copies]
        for dx, dy in changes:
            input += dx
            output += dy


def _chunk(input: Array, output: Array, s: Passage, first: int, last: int) -> tuple[Array, Array]:
    random = random_words(s.key, first, last - first, s.negatives)
    reach = 1 + (random[:, 0].astype(np.uint64) * np.uint64(s.window) >> np.uint64(32)).astype(int)
    negatives = s.noise.draw(random[:, 1:])
    for center in range(first, last):
        around = _around(s.ids, center, int(reach[center - first]))
        if around:
            _step(input, output, s, np.array(around), int(s.ids[center]), negatives[center - first])
    return input, output


def _around(ids: Array, center: int, reach: int) -> list[int]:
    """The words of the window, up to a boundary or an end of the text."""
    if ids[center] < 0:
        return []
    before = ids[max(center - reach, 0) : center][::-1]
    after = ids[center + 1 : center + 1 + reach]
    left, right = ([*side.tolist(), -1] for side in (before, after))
    return [*left[: left.index(-1)][::-1], *right[: right.index(-1)]]


def _step(input: Array, output: Array, s: Passage, around: Array, center: int, drawn: Array) -> None:
    targets = np.array([center, *drawn[drawn != center]])  # the center is no example against itself
    label = np.arange(len(targets)) == 0
    x, y = input[around], output[targets]  # (M, C), (n, C)
    if s.average:
        x = x.mean(axis=0, keepdims=True)  # (1, C)
    G = np.asarray(s.lr * (label - ops.sigmoid(x @ y.T)), x.dtype)  # (M, n)
    dx = G @ y
    if s.average:
        dx = np.repeat(dx / len(around), len(around), axis=0)
    np.add.at(input, around, dx)  # a word that stands twice in the window takes both steps
    np.add.at(output, targets, G.T @ x)
