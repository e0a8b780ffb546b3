"""Word vectors: neighbors, analogies, and how well they agree with people.

cosine      u·v / (‖u‖ ‖v‖)
analogy     king - man + woman ≈ queen: the nearest vector, none of the three words counted
evaluation  rank correlation of cosines with people's scores; fraction of analogies answered right
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.suggest import did_you_mean
from chainrule.types import Array

Found = list[tuple[str, float]]

BATCH = 512  # analogies answered by one matmul


def cosine_similarity(u: npt.ArrayLike, v: npt.ArrayLike) -> float:
    """u (C,), v (C,) -> the cosine of the angle between them; 0 if one of them is 0"""
    return float(_unit(np.asarray(u)[None])[0] @ _unit(np.asarray(v)[None])[0])


def cosine_table(rows: npt.ArrayLike) -> Array:
    """rows (n, C) -> cosines of all pairs (n, n)"""
    unit = _unit(np.asarray(rows))
    return unit @ unit.T


class WordVectors:
    """Words and their vectors (V, C), and questions to them.

    >>> from chainrule.inspect.embeddings import WordVectors
    >>> vectors = WordVectors(["cat", "dog", "car"], [[0.2, 0.8, -0.1], [0.3, 0.7, -0.2], [-0.5, 0.1, 0.6]])
    >>> [word for word, cosine in vectors.neighbors("cat")]
    ['dog', 'car']
    """

    def __init__(self, words: Sequence[str], matrix: npt.ArrayLike) -> None:
        self.words, self.matrix = list(words), np.asarray(matrix)
        if self.matrix.ndim != 2 or len(self.words) != len(self.matrix):
            raise ShapeError(
                f"word vectors: {len(self.words)} words, vectors of shape {self.matrix.shape} (must be (words, C))"
            )
        self.unit = _unit(self.matrix)
        self._index = {word: i for i, word in enumerate(self.words)}

    def __contains__(self, word: str) -> bool:
        return word in self._index

    def id(self, word: str) -> int:
        """The row of a word, or an error that names words like it."""
        if word not in self._index:
            hint = did_you_mean(word, self.words[:20_000], n=3) or f"{len(self.words):,} words are known"
            raise DataError(f"word {word!r}: not in the vocabulary ({hint})")
        return self._index[word]

    def similarity(self, a: str, b: str) -> float:
        """The cosine between two words."""
        return float(self.unit[self.id(a)] @ self.unit[self.id(b)])

    def table(self, words: Sequence[str]) -> Array:
        """n words -> cosines of all pairs (n, n)"""
        return cosine_table(self.matrix[[self.id(word) for word in words]])

    def neighbors(self, word: str, n: int = 10) -> Found:
        """The n nearest words with their cosines, without the word itself."""
        place = self.id(word)
        return self.nearest(self.unit[place], n, without=[place])

    def analogy(self, a: str, b: str, c: str, n: int = 10) -> Found:
        """The n words nearest to a - b + c, such as king - man + woman; a, b and c do not count."""
        places = [self.id(word) for word in (a, b, c)]
        u, v, w = self.unit[places]
        return self.nearest(u - v + w, n, without=places)

    def nearest(self, vector: npt.ArrayLike, n: int = 10, without: Iterable[int] = ()) -> Found:
        """The n words nearest to a vector (C,), but for the ids in `without`; equal ones in order of their ids."""
        if n < 1:
            raise ConfigError.of("nearest", {"n": n}, "must be at least 1")
        cosines = self.unit @ _unit(np.asarray(vector)[None])[0]  # (V,)
        left_out = set(without)
        order = np.argsort(-cosines, kind="stable")[: n + len(left_out)]
        return [(self.words[i], float(cosines[i])) for i in order if int(i) not in left_out][:n]


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Correlation of ranks; values that are equal share the mean of their ranks. NaN if one side is constant.

    >>> from chainrule.inspect.embeddings import spearman
    >>> spearman([1, 2, 3, 4], [10, 100, 1000, 10000])
    1.0
    """
    ranks = np.stack([_ranks(np.asarray(side, float)) for side in (x, y)])
    a, b = ranks - ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / spread) if spread else float("nan")


def similarity_report(vectors: WordVectors, pairs: Sequence[tuple[str, str, float]]) -> dict[str, Any]:
    """How well cosines order pairs as people do: {"spearman", "pairs" used, "missing" words outside}.

    Words are looked up as they are written, then in lower case.
    """
    known = [(_find(vectors, a), _find(vectors, b), score) for a, b, score in pairs]
    used = [(vectors.similarity(a, b), score) for a, b, score in known if a is not None and b is not None]
    if len(used) < 2:
        raise DataError(
            f"similarity: {len(used)} of {len(pairs)} pairs are in the vocabulary (must be at least 2)"
        )
    correlation = spearman(*zip(*used, strict=True))
    if math.isnan(correlation):
        raise DataError(
            f"similarity: all {len(used)} pairs have the same score or cosine (must differ to be ordered)"
        )
    return {"spearman": correlation, "pairs": len(used), "missing": len(pairs) - len(used)}


def analogy_report(vectors: WordVectors, sections: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Any]:
    """Fraction of questions a : b = c : d whose d is nearest to b - a + c, in total and per section."""
    report: dict[str, Any] = {"sections": {}}
    total = right = asked = 0
    for name, questions in sections.items():
        found = [[_find(vectors, word) for word in question] for question in questions]
        ids = np.array([[vectors.id(word) for word in q if word] for q in found if None not in q], int)
        hits = int(_answered(vectors, ids).sum()) if len(ids) else 0
        report["sections"][name] = {"accuracy": hits / len(ids) if len(ids) else None, "questions": len(ids)}
        asked, right, total = asked + len(ids), right + hits, total + len(questions)
    if not asked:
        raise DataError(f"analogies: none of {total} questions has all its words in the vocabulary")
    return {"accuracy": right / asked, "questions": asked, "missing": total - asked} | report


def _answered(vectors: WordVectors, ids: Array) -> Array:
    """Questions (n, 4) -> which of them (n,) are answered right"""
    right = []
    for some in np.array_split(ids, range(BATCH, len(ids), BATCH)):
        a, b, c = (vectors.unit[some[:, i]] for i in range(3))
        scores = (b - a + c) @ vectors.unit.T  # (n, V); its length does not change who is nearest
        np.put_along_axis(scores, some[:, :3], -np.inf, axis=1)
        right.append(scores.argmax(axis=1) == some[:, 3])
    return np.concatenate(right)


def _find(vectors: WordVectors, word: str) -> str | None:
    return next((form for form in (word, word.lower()) if form in vectors), None)


def _unit(rows: Array) -> Array:
    rows = rows.astype(np.result_type(rows, np.float32), copy=False)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def _ranks(values: Array) -> Array:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # the highest rank in each group of equal values
    return (last - (counts - 1) / 2)[inverse]
