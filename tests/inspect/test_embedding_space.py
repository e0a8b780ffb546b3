"""The shape of a table of embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.doctor.rules import of_embeddings
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect import anisotropy, clusters, concept_direction, embedding_space
from chainrule.inspect.embedding_space import principal_components

rng = np.random.default_rng(0)


@pytest.mark.requirement("R-228")
def test_anisotropy_of_random_and_shifted_vectors() -> None:
    vectors = rng.normal(size=(400, 50))
    assert abs(anisotropy(vectors)) < 0.05
    assert anisotropy(vectors + 3) > 0.8
    few = vectors[:7]
    unit = few / np.linalg.norm(few, axis=1, keepdims=True)
    pairs = [unit[i] @ unit[j] for i in range(7) for j in range(7) if i != j]
    assert anisotropy(few) == pytest.approx(np.mean(pairs))
    for bad, message in ((np.zeros((3, 2)), "row 0 has length 0.0"), (np.full((3, 2), np.nan), "length nan")):
        with pytest.raises(ConfigError, match=message):
            anisotropy(bad)
    with pytest.raises(ShapeError, match="n at least 2"):
        anisotropy(np.ones((1, 3)))


@pytest.mark.requirement("R-228")
def test_planted_clusters_and_directions_are_found() -> None:
    centers = rng.normal(size=(4, 30))
    truth = np.repeat(np.arange(4), 25)
    vectors = centers[truth] + 0.3 * rng.normal(size=(100, 30))
    found = clusters(vectors, 4)
    assert len({(a, b) for a, b in zip(truth.tolist(), found.labels.tolist(), strict=True)}) == 4
    assert found.tightness > 0.9 > 0.5 > found.separation
    for k in (1, 101):
        with pytest.raises(ConfigError, match=f"k is {k}, there are 100"):
            clusters(vectors, k)

    concept = rng.normal(size=30)
    table = rng.normal(size=(20, 30))
    table[10:] = table[:10] + concept + 0.1 * rng.normal(size=(10, 30))
    direction = concept_direction(table, [(i, i + 10) for i in range(10)])
    assert direction.vector @ concept / np.linalg.norm(concept) > 0.99 and direction.agreement > 0.95
    by_chance = concept_direction(table, [(i, i + 1) for i in range(9)])
    assert by_chance.agreement < 0.6
    with pytest.raises(ConfigError, match="rows from 0 to 19"):
        concept_direction(table, [(0, 20)])


@pytest.mark.requirement("R-228")
def test_the_report_in_words() -> None:
    vectors = rng.normal(size=(200, 40))
    assert of_embeddings(embedding_space(vectors)).level == "ok"
    cone = embedding_space(vectors + 3)
    finding = of_embeddings(cone)
    assert finding.level == "note" and "Subtract the mean" in finding.advice
    assert abs(cone.centered) < 0.05 and cone.clusters.labels.shape == (200,)


def test_two_groups_and_a_group_for_every_vector() -> None:
    vectors = np.array([[1.0, 0.1], [2.0, -0.1], [0.0, 3.0], [0.1, 1.0]])
    two = clusters(vectors, 2)
    assert len(set(two.labels[:2])) == len(set(two.labels[2:])) == 1 and two.labels[0] != two.labels[2]
    cosine = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ two.centers.T
    assert two.tightness == pytest.approx(cosine.max(axis=1).mean())
    assert two.separation == pytest.approx(cosine.min(axis=1).mean())  # the other of two
    three = clusters(np.array([[1.0, 0], [0, 1.0], [-1.0, -0.01]]), 3)
    assert three.separation == pytest.approx((0 + 0 - 0.01 / np.hypot(1, 0.01)) / 3, abs=1e-9)  # the nearest
    each = clusters(vectors, 4)
    assert sorted(each.labels) == [0, 1, 2, 3] and each.tightness == pytest.approx(1)


def test_principal_components() -> None:
    flat = rng.normal(size=(300, 2)) * [5, 1] @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:2] + 3
    found = principal_components(flat, 2)
    assert np.allclose(found.directions @ found.directions.T, np.eye(2))
    assert found.explained.sum() == pytest.approx(1) and found.explained[0] > 0.9
    places = found.project(flat)
    assert np.allclose(places.mean(axis=0), 0) and abs(np.corrcoef(places.T)[0, 1]) < 1e-9
    assert np.allclose(places @ found.directions + found.mean, flat)  # nothing is lost of a plane
    again = principal_components(flat[::-1], 2)
    assert np.allclose(again.directions, found.directions)  # the sign does not depend on the order
    for k in (0, 7):
        with pytest.raises(ShapeError, match=f"k is {k}"):
            principal_components(flat, k)
