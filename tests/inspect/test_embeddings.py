"""Questions to word vectors: cosines, neighbors, analogies, and examinations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.inspect.embeddings import (
    WordVectors,
    analogy_report,
    cosine_similarity,
    cosine_table,
    similarity_report,
    spearman,
)
from tests.vectors import vector


@pytest.mark.requirement("R-250")
def test_cosines() -> None:
    dog, car = vector("004-7.2.1-cos-cat-dog"), vector("004-7.2.1-cos-cat-car")
    for v in (dog, car):
        a, b = np.array(v.inputs["u"]), np.array(v.inputs["v"])
        lengths = {"norm_u": np.linalg.norm(a), "norm_v": np.linalg.norm(b)}
        got = {"dot": a @ b, "cos": cosine_similarity(a, b), **lengths}
        got["product"] = lengths["norm_u"] * lengths["norm_v"]
        v.check({name: got[name] for name in v.recomputed})
    words = WordVectors(["cat", "dog", "car"], [dog.inputs["u"], dog.inputs["v"], car.inputs["v"]])
    (first, near), (second, far) = words.neighbors("cat")
    assert (first, second) == ("dog", "car")
    assert near == pytest.approx(dog.recomputed["cos"]) and far == pytest.approx(car.recomputed["cos"])


PLANTED = {  # (royal, male, female, fruit)
    "king": [1, 1, 0, 0],
    "queen": [1, 0, 1, 0],
    "man": [0, 1, 0, 0],
    "woman": [0, 0, 1, 0],
    "prince": [0.8, 1, 0, 0.1],
    "apple": [0, 0, 0, 1],
}


def planted() -> WordVectors:
    return WordVectors(list(PLANTED), np.array(list(PLANTED.values()), float))


@pytest.mark.requirement("R-251")
def test_king_minus_man_plus_woman() -> None:
    vectors = planted()
    assert vectors.analogy("king", "man", "woman", n=1)[0][0] == "queen"
    answers = [word for word, _ in vectors.analogy("king", "man", "woman")]
    assert not {"king", "man", "woman"} & set(answers) and len(answers) == 3
    u, v, w = (vectors.unit[vectors.id(word)] for word in ("king", "man", "woman"))
    plain = [word for word, _ in vectors.nearest(u - v + w, 3)]
    assert "king" in plain or "woman" in plain  # without the exclusion an input is among the nearest


@pytest.mark.requirement("R-262")
def test_a_table_of_similarities() -> None:
    toys = {
        "cat": [0.9, 0.8, 0.1],
        "dog": [0.8, 0.9, 0.2],
        "fish": [0.9, 0.4, -0.1],
        "car": [-0.5, 0.1, 0.9],
        "truck": [-0.6, -0.1, 1.0],
    }
    table = WordVectors(list(toys), list(toys.values())).table(list(toys))
    assert table.shape == (5, 5)
    np.testing.assert_array_equal(table, table.T)
    np.testing.assert_allclose(np.diag(table), 1, rtol=1e-12)
    animals, vehicles = slice(0, 3), slice(3, 5)
    within = min(table[animals, animals].min(), table[vehicles, vehicles].min())
    assert within > table[animals, vehicles].max()


def test_a_vector_of_zeros_is_like_nothing() -> None:
    assert cosine_similarity([0, 0], [1, 2]) == 0
    np.testing.assert_array_equal(cosine_table([[0, 0], [1, 0]]), [[0, 0], [0, 1]])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_spearman_is_pearson_of_mean_ranks(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)

    def ranks(side: tuple[int, ...]) -> list[float]:
        return [(sum(b < a for b in side) + sum(b <= a for b in side) + 1) / 2 for a in side]

    got = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(got)
    else:
        assert got == pytest.approx(np.corrcoef(ranks(x), ranks(y))[0, 1], abs=1e-12)
        assert spearman(np.exp(x), y) == pytest.approx(got, abs=1e-12)  # only the order counts


def test_similarity_report() -> None:
    pairs = [("king", "Queen", 8.0), ("king", "man", 7.0), ("king", "apple", 1.0), ("king", "pope", 5.0)]
    report = similarity_report(planted(), pairs)
    assert report["pairs"] == 3 and report["missing"] == 1
    assert report["spearman"] == pytest.approx(0.5)  # man is nearer than queen
    with pytest.raises(DataError, match="similarity: 0 of 1 pairs are in the vocabulary"):
        similarity_report(planted(), [("pope", "king", 1.0)])
    two = [("king", "man", 2.0), ("king", "apple", 1.0)]  # the fewest that have an order
    assert similarity_report(planted(), two)["spearman"] == pytest.approx(1)
    with pytest.raises(DataError, match="similarity: 1 of 2 pairs"):
        similarity_report(planted(), [two[0], ("pope", "king", 1.0)])


def test_analogy_report() -> None:
    sections = {
        "family": [("man", "woman", "King", "queen"), ("man", "king", "woman", "queen")],
        "wrong": [("man", "woman", "king", "apple")],
        "unknown": [("man", "woman", "pope", "papess")],
    }
    report = analogy_report(planted(), sections)
    assert report["accuracy"] == 2 / 3 and report["questions"] == 3 and report["missing"] == 1
    assert report["sections"]["wrong"] == {"accuracy": 0.0, "questions": 1}
    assert report["sections"]["unknown"] == {"accuracy": None, "questions": 0}
    with pytest.raises(DataError, match="none of 1 questions"):
        analogy_report(planted(), {"unknown": sections["unknown"]})


def test_errors() -> None:
    with pytest.raises(DataError, match=r"word 'kign': not in the vocabulary \(did you mean king"):
        planted().neighbors("kign")
    with pytest.raises(ConfigError, match="n is 0"):
        planted().neighbors("king", 0)
    with pytest.raises(ShapeError, match="2 words, vectors of shape"):
        WordVectors(["a", "b"], np.ones((3, 2)))
