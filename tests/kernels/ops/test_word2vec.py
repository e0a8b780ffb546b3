"""word2vec in C++ against its statement in NumPy; collected only where the extension was built."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chainrule import native
from chainrule.autograd.types import Array
from chainrule.random import key
from chainrule.train.word_vectors.sampling import AliasTable
from chainrule.train.word_vectors.update import Passage, learn, reference

extension = native.kernels()


def case(V: int, C: int, n: int = 90, **settings: object) -> tuple[Array, Array, Passage]:
    rng = np.random.default_rng((V, C, n))
    tables = (rng.normal(size=(2, V, C)) / np.sqrt(C)).astype(np.float32)
    ids = rng.integers(0, V, size=n).astype(np.int32)
    ids[rng.random(n) < 0.1] = -1
    passage = Passage(
        ids, 0, n, AliasTable.of(rng.dirichlet(np.ones(V))), key("test", 3, seed=5), window=3, negatives=5,
        average=False, lr=0.05, count=7, lanes=3,
    )  # fmt: skip
    return *tables, replace(passage, **settings)  # type: ignore[arg-type]


def by(method: object, case: tuple[Array, Array, Passage], dtype: type = np.float32) -> Array:
    tables = [table.astype(dtype) for table in case[:2]]
    method(*tables, case[2])  # type: ignore[operator]
    return np.stack(tables)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("C", [1, 7, 16, 33, 100])
@pytest.mark.parametrize("V", [2, 5, 300])
def test_equals_the_statement_in_numpy(V: int, C: int, average: bool, isa: str) -> None:
    assert extension.set_isa(isa)
    example = case(V, C, average=average)
    want = by(reference, example, np.float64)
    assert np.abs(want - example[:2]).max() > 1e-3
    np.testing.assert_allclose(by(learn, example), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"negatives": 1},
        {"negatives": 2},
        {"negatives": 7},
        {"negatives": 8},
        {"negatives": 20},
        {"window": 1},
        {"window": 64},
        {"count": 1, "lanes": 1},
        {"count": 1000},
        {"lanes": 16},
        {"first": 11, "last": 12},
        {"first": 30, "last": 30},
        {"first": 5, "last": 77},
    ],
)
def test_every_setting_equals_the_statement(settings: dict[str, int]) -> None:
    example = case(30, 20, **settings)
    np.testing.assert_allclose(by(learn, example), by(reference, example, np.float64), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("average", [False, True])
def test_the_same_bits_for_any_number_of_threads(average: bool) -> None:
    example = case(200, 100, 5000, average=average, count=16, lanes=8)
    bits = []
    for threads in (1, 2, 3, 8):
        native.set_threads(threads)
        bits.append(by(learn, example))
    for other in bits[1:]:
        np.testing.assert_array_equal(bits[0], other)


def test_passages_in_turn_are_the_whole() -> None:
    """Random words belong to positions, so a text may be read in pieces of whole rounds."""
    input, output, passage = case(50, 24, 210)  # ten rounds
    whole = by(learn, (input, output, passage))
    learn(input, output, replace(passage, last=105))
    learn(input, output, replace(passage, first=105))
    np.testing.assert_array_equal(np.stack([input, output]), whole)


def test_boundaries_only_and_lonely_words_change_nothing() -> None:
    example = case(5, 8)
    example[2].ids[:] = -1
    example[2].ids[::2] = 3
    np.testing.assert_array_equal(by(learn, example), np.stack(example[:2]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": np.array([0, 5], np.int32), "last": 2}, "ids holds 5, expected -1 to 4"),
        ({"ids": np.array([0, -2], np.int32), "last": 2}, "ids holds -2, expected -1 to 4"),
        ({"last": 91}, "first and last must be positions in ids"),
        ({"first": 4, "last": 3}, "first and last must be positions in ids"),
        ({"window": 0}, "window must be from 1 to 64"),
        ({"window": 65}, "window must be from 1 to 64"),
        ({"count": 0}, "count and chunks must be at least 1"),
        ({"noise": AliasTable.of(np.ones(4) / 4)}, "accept has 4 elements, expected 5"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        by(learn, case(5, 8, **change))
