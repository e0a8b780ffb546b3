"""Signatures that estimate how alike two texts are."""

from __future__ import annotations

import numpy as np

from chainrule.data import load
from chainrule.data.clean.minhash import BANDS, ROWS, Index, signature, similarity

PROSE = load("pydoc").text
WORDS = PROSE.split()


def shingles(text: str) -> set[bytes]:
    content = " ".join(text.lower().split()).encode()
    return {content[i : i + 12] for i in range(max(1, len(content) - 11))}


def jaccard(a: str, b: str) -> float:
    return len(shingles(a) & shingles(b)) / len(shingles(a) | shingles(b))


def edited(seed: int, words: int, changes: int) -> tuple[str, str]:
    """A text, and the same with some words replaced."""
    rng = np.random.default_rng(seed)
    first = int(rng.integers(len(WORDS) - words))
    text = WORDS[first : first + words]
    other = list(text)
    for place in rng.choice(words, changes, replace=False):
        other[place] = f"new{place}"
    return " ".join(text), " ".join(other)


def test_the_estimate_is_near_the_jaccard_index() -> None:
    errors = []
    for seed in range(40):
        a, b = edited(seed, 400, 3 * seed)
        errors.append(float(similarity(signature(a), signature(b))) - jaccard(a, b))
    assert abs(np.mean(errors)) < 0.02 and np.std(errors) < 0.06


def test_short_texts_are_estimated_too() -> None:
    errors = []
    for seed in range(60):
        a, b = edited(seed, 12, seed % 3)
        errors.append(float(similarity(signature(a), signature(b))) - jaccard(a, b))
    assert abs(np.mean(errors)) < 0.03


def test_a_signature_is_the_same_everywhere() -> None:
    assert signature("The cat sat on the mat.")[:3].tolist() == [3605380802, 3605380801, 3605380800]
    assert signature("").shape == (BANDS * ROWS,)


def test_an_index_without_texts_finds_none() -> None:
    assert Index().nearest(signature("a")) == (-1, 0.0)
