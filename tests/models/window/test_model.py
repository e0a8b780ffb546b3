"""Windows: which of a batch are learned from, and the few empty ones beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.models import IGNORE, make
from chainrule.models.microbatch import Batch, spare

V = 11
SIZES: dict[str, dict[str, Any]] = {"mlp": {"n_layer": 2, "n_embd": 4, "n_hidden": 9}, "ngram": {}}


def batch(lengths: list[int], tokens: int = 20) -> Batch:
    """Rows of these lengths."""
    ids = np.random.default_rng(0).integers(V, size=(len(lengths), tokens + 1))
    there = np.arange(tokens) < np.array(lengths)[:, None]
    return Batch(ids[:, :-1], np.where(there, ids[:, 1:], IGNORE))


def gradients(model: Any, loss: Any) -> list[np.ndarray]:
    loss.backward()
    return [param.grad.copy() for _, param in model.named_parameters()]


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("lengths", [[3, 17, 1], [20, 20, 20], [20, 20, 19]])
def test_only_windows_with_a_target_count(family: str, lengths: list[int]) -> None:
    """The loss, its gradient and the statistics of a batch norm are those of these windows alone."""
    cr.seed(1)
    model, alone = (
        make(family, **SIZES[family], vocab_size=V, block_size=3).to(np.float64) for _ in range(2)
    )
    alone.load(model.state())
    inputs, targets, _ = batch(lengths)
    counts = targets != IGNORE
    found = gradients(model, model.loss(inputs, targets))
    logits = alone.predict(alone.contexts(inputs)[counts])
    want = gradients(alone, ops.cross_entropy(logits, targets=targets[counts]))
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-14)
    for (name, got), (_, expected) in zip(model.named_buffers(), alone.named_buffers(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("family", SIZES)
def test_windows_have_few_sizes(family: str) -> None:
    model = make(family, **SIZES[family], vocab_size=V, block_size=3)
    sizes = set()
    for length in range(1, 21):
        prepared = model.prepared(batch([length, 20, 20]))
        assert model.prepared(prepared) is prepared
        sizes.add(len(prepared.targets))
    assert sizes == {48, 60}  # never more than there are


def test_spare_places_are_few_and_give_few_sizes() -> None:
    for size in (1, 16, 64, 1000, 5000):
        sums = [count + spare(count, size) for count in range(size + 1)]
        assert all(
            count <= found <= min(size, max(count + 15, count * 17 / 16)) for count, found in enumerate(sums)
        )
        assert len(set(sums)) <= 90
