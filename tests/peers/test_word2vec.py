"""Word vectors beside gensim: each reads what the other has written, and both give the same answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chainrule.inspect.embeddings import WordVectors
from chainrule.io.vectors import read_vectors, write_vectors

gensim = pytest.importorskip("gensim")

WORDS = ["king", "queen", "man", "woman", "l'été", "中文", "apple"]


def table() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(WORDS), 10)).astype(np.float32)


def test_gensim_reads_what_we_write(tmp_path: Path) -> None:
    write_vectors(tmp_path / "vectors.txt", WORDS, table())
    theirs = gensim.models.KeyedVectors.load_word2vec_format(str(tmp_path / "vectors.txt"))
    assert theirs.index_to_key == WORDS
    np.testing.assert_array_equal(theirs.vectors, table())


def test_we_read_what_gensim_writes(tmp_path: Path) -> None:
    theirs = gensim.models.KeyedVectors(10)
    theirs.add_vectors(WORDS, table())
    theirs.save_word2vec_format(str(tmp_path / "vectors.txt"))
    words, matrix = read_vectors(tmp_path / "vectors.txt")
    assert words == WORDS
    np.testing.assert_allclose(matrix, table(), rtol=1e-6)


def test_the_same_neighbors_and_analogies() -> None:
    ours, theirs = WordVectors(WORDS, table()), gensim.models.KeyedVectors(10)
    theirs.add_vectors(WORDS, table())
    for word in WORDS:
        want = theirs.most_similar(word, topn=4)
        got = ours.neighbors(word, 4)
        assert [w for w, _ in got] == [w for w, _ in want]
        np.testing.assert_allclose([c for _, c in got], [c for _, c in want], rtol=1e-5)
    want = theirs.most_similar(positive=["king", "woman"], negative=["man"], topn=3)
    got = ours.analogy("king", "man", "woman", 3)
    assert [w for w, _ in got] == [w for w, _ in want]
    np.testing.assert_allclose([c for _, c in got], [c for _, c in want], rtol=1e-4)
