"""Batches of documents: padded, packed, in pairs, mixed; the loss sees each target once and no padding."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.data import IGNORE, DocumentBatches, Encoded, PackedBatches, PairBatches, pad, padded, shift
from chainrule.errors import ConfigError, DataError
from chainrule.models import GPT, GPTConfig, language_model

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=12), min_size=1, max_size=15)
SEEDS = st.integers(0, 2**64 - 1)


def documents(*lengths: int) -> Encoded:
    """Documents of which every token is another."""
    ids = np.arange(sum(lengths), dtype=np.int32)
    return Encoded(ids, np.cumsum([0, *lengths]))


def small_model(vocab_size: int = 50) -> GPT:
    cr.seed(0)
    return GPT(GPTConfig(n_layer=2, n_head=2, n_embd=16, block_size=32, vocab_size=vocab_size))


def pairs_of(inputs: np.ndarray, targets: np.ndarray) -> Counter[tuple[int, int]]:
    counted = targets != IGNORE
    return Counter(zip(inputs[counted].tolist(), targets[counted].tolist(), strict=True))


def test_both_rooms_ignore_the_same_target() -> None:
    assert IGNORE == language_model.IGNORE


@pytest.mark.requirement("R-464")
@settings(max_examples=60)
@given(rows=ROWS, length=st.integers(1, 12))
def test_truncation_and_padding_to_a_length(rows: list[list[int]], length: int) -> None:
    ids, mask = pad(rows, length)
    assert ids.shape == mask.shape == (len(rows), length)
    for row, got, there in zip(rows, ids, mask, strict=True):
        assert got[there].tolist() == row[:length]
        assert not got[~there].any()
    assert pad(rows)[0].shape == (len(rows), max(map(len, rows)))


def reference_loss(model: GPT, rows: list[np.ndarray]) -> float:
    """The mean over all targets, one unpadded document at a time."""
    losses = [(model.loss(row[None, :-1], row[None, 1:]).item(), len(row) - 1) for row in rows]
    return sum(loss * n for loss, n in losses) / sum(n for _, n in losses)


@pytest.mark.requirement("R-460", "R-461")
def test_the_loss_of_a_padded_batch_is_that_of_its_documents() -> None:
    model = small_model().to(np.float64)
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 50, n) for n in (2, 9, 31, 5)]
    inputs, targets = shift(*pad(rows))
    assert model.loss(inputs, targets).item() == pytest.approx(reference_loss(model, rows), abs=1e-10)
    for row, together in zip(rows, model(inputs).numpy(), strict=True):
        alone = model(row[None, :-1]).numpy()[0]
        np.testing.assert_allclose(together[: len(row) - 1], alone, rtol=0, atol=1e-10)


@pytest.mark.requirement("R-459")
def test_ids_become_channels_and_channels_logits() -> None:
    model = small_model()
    inputs, _ = DocumentBatches(documents(5, 9, 7), batch_size=3, block_size=32).batch(0)
    assert inputs.shape == (3, 8)
    with cr.capture() as seen:
        logits = model(inputs)
    assert seen["wte.embedding"].value.shape == (3, 8, 16)  # (B, T, C)
    assert logits.shape == (3, 8, 50)


@pytest.mark.requirement("R-462")
@settings(max_examples=40)
@given(rows=ROWS, size=st.integers(1, 5), block=st.integers(1, 12), seed=SEEDS)
def test_batches_of_documents(rows: list[list[int]], size: int, block: int, seed: int) -> None:
    encoded = Encoded.of([[*row, 100 + i] for i, row in enumerate(rows)], start=99)  # each ends differently
    batches = DocumentBatches(encoded, batch_size=size, block_size=block, seed=seed)
    again = DocumentBatches(encoded, batch_size=size, block_size=block, seed=seed)
    seen: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for step in range(len(rows)):  # size epochs
        inputs, targets = batches.batch(step)
        assert inputs.shape == targets.shape and inputs.shape[0] == size and inputs.shape[1] <= block
        assert (again.batch(step)[0] == inputs).all() and (again.batch(step)[1] == targets).all()
        for x, y in zip(inputs, targets, strict=True):
            there = y != IGNORE
            assert not x[~there].any() and there.any()
            seen[tuple(x[there].tolist()), tuple(y[there].tolist())] += 1
    expected = Counter((tuple(d[:-1][:block].tolist()), tuple(d[1:][:block].tolist())) for d in encoded)
    assert seen == Counter({row: n * size for row, n in expected.items()})


def test_resuming_needs_only_the_step() -> None:
    encoded = documents(*range(2, 60))
    for batches in (
        DocumentBatches(encoded, batch_size=4, block_size=16, seed=5, pool=8),
        DocumentBatches(encoded, batch_size=4, block_size=16, seed=5, replacement=True),
        PackedBatches(encoded, batch_size=4, block_size=16, seed=5),
    ):
        later = batches.batch(812)
        for step in range(3):
            batches.batch(step)
        assert all((a == b).all() for a, b in zip(batches.batch(812), later, strict=True))


def test_bucketing_saves_padding() -> None:
    encoded = documents(*np.random.default_rng(0).integers(2, 100, 500).tolist())

    def wasted(pool: int) -> float:
        batches = DocumentBatches(encoded, batch_size=10, block_size=128, pool=pool)
        return float(np.mean([(batches.batch(step)[1] == IGNORE).mean() for step in range(50)]))

    assert wasted(25) < 0.1 < 0.3 < wasted(1)


@settings(max_examples=40)
@given(rows=ROWS, size=st.integers(1, 4), block=st.integers(1, 12))
def test_evaluation_visits_every_document_once(rows: list[list[int]], size: int, block: int) -> None:
    encoded = Encoded.of([[*row, 1] for row in rows], start=0)
    found = sum((pairs_of(*batch) for batch in padded(encoded, batch_size=size, block_size=block)), Counter())
    cut = sum((pairs_of(*shift(*pad([row[: block + 1]]))) for row in encoded), Counter())
    assert found == cut


def test_sizes_and_empty_data_are_refused() -> None:
    for sizes in ({"batch_size": 0, "block_size": 4}, {"batch_size": 1, "block_size": 0}):
        with pytest.raises(ConfigError, match=r"_size is 0 \(must be at least 1\)"):
            DocumentBatches(documents(5), **sizes)
    with pytest.raises(ConfigError, match="pool is 0"):
        DocumentBatches(documents(5), batch_size=1, block_size=4, pool=0)
    with pytest.raises(DataError, match="none of 3 has two tokens"):
        DocumentBatches(documents(1, 0, 1), batch_size=1, block_size=4)
    with pytest.raises(DataError, match="2 sources, 1 targets"):
        PairBatches([[1], [2]], [[1]], start=0, end=0, batch_size=1, block_size=4)
    with pytest.raises(DataError, match="boundaries must run from 0 to 3"):
        Encoded(np.arange(3), np.array([0, 2]))
