"""What models of sequences can remember: recall over a distance, order of words, copies through a bottleneck."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.lessons.sequence_tasks import (
    PAD,
    Bites,
    Copy,
    Order,
    Recall,
    Retrieve,
    accuracy,
    classifier,
    copy_losses,
    fit,
    recall_table,
)


@pytest.mark.requirement("R-245")
def test_recall_over_a_distance() -> None:
    """After as many steps: the plain network forgets within 20 tokens, the LSTM within 80, attention does not."""
    table = recall_table(steps=60)
    assert list(table) == ["rnn", "lstm", "attention"] and all(
        list(row) == [5, 20, 80] for row in table.values()
    )
    assert table["rnn"][5] > 0.9 and table["rnn"][20] < 0.5 and table["rnn"][80] < 0.5
    assert table["lstm"][20] > 0.9 and table["lstm"][80] < 0.5
    assert table["attention"][80] > 0.8


@pytest.mark.requirement("R-246")
def test_the_order_of_words() -> None:
    task, found = Order(), {}
    for kind in ("bag", "rnn"):
        cr.seed(0)
        model = classifier(kind, task)
        fit(model, task, 100, lr=5e-3)
        found[kind] = accuracy(model, task, batches=30)
    assert abs(found["bag"] - 0.5) < 3 * np.sqrt(0.25 / (30 * 32))
    assert found["rnn"] > 0.9


@pytest.mark.requirement("R-247")
def test_attention_beats_one_vector_at_copying() -> None:
    losses = copy_losses(length=20, steps=80, width=48)
    late = {name: values[-10:].mean() for name, values in losses.items()}
    assert len(losses["attention"]) == len(losses["bottleneck"]) == 80
    assert late["attention"] < 0.5 * late["bottleneck"]


@pytest.mark.requirement("R-304")
def test_one_attention_layer_finds_the_marked_token_anywhere() -> None:
    task = Retrieve(length=40)
    cr.seed(0)
    model = classifier("retriever", task)
    assert accuracy(model, task) < 0.3
    fit(model, task, 120, lr=1e-2)
    assert accuracy(model, task) > 0.95
    ids, lengths, _ = task.batch(1)
    with cr.capture("*.attention") as seen:
        model(ids, lengths)
    (attention,) = seen.values()
    A = cr.ops.attention_weights(*attention.saved[:2])[:, 0, 0]  # (B, T): where the question looks
    marked = (ids >= task.n_classes) & (ids < 2 * task.n_classes)
    assert A[marked].mean() > 0.5 and (A.argmax(axis=1) == marked.argmax(axis=1)).mean() > 0.95


@pytest.mark.requirement("R-319")
def test_who_bites_whom_needs_positions() -> None:
    task, found = Bites(), {}
    for kind in ("orderless", "encoder"):
        cr.seed(0)
        model = classifier(kind, task)
        fit(model, task, 120, lr=5e-3)
        found[kind] = accuracy(model, task)
    assert abs(found["orderless"] - 0.5) < 0.05
    assert found["encoder"] > 0.95


def test_an_orderless_encoder_gives_the_same_mean_for_any_order() -> None:
    model = classifier("orderless", Bites())
    ids, lengths, _ = Bites().batch(0)
    said, reversed_ = model.summary(ids, lengths).numpy().reshape(2, 16, 32)
    np.testing.assert_allclose(said, reversed_, rtol=1e-4, atol=1e-6)


def test_the_tasks_are_what_they_say() -> None:
    ids, lengths, labels = Recall(7, seed=1).batch(3)
    assert ids.shape == (32, 8) and (lengths == 8).all() and (ids[:, 0] == labels + 1).all()
    assert (ids[:, 1:] > 4).all()

    ids, lengths, labels = Order(longest=10, seed=1).batch(3)
    assert ids.shape == (32, 10) and set(lengths) <= set(range(2, 11)) and len(set(lengths)) > 2
    for row, length, label in zip(ids, lengths, labels, strict=True):
        assert (row[length:] == PAD).all() and (row[:length] != PAD).all()
        words = [int(word) for word in row if word in (1, 2)]
        assert words == ([2, 1] if label else [1, 2])

    source, inputs, targets = Copy(length=6).batch(0)
    assert (
        (targets == source).all() and (inputs[:, 1:] == source[:, :-1]).all() and (inputs[:, 0] == PAD).all()
    )
    ids, lengths, labels = Retrieve(length=9).batch(2)
    marked = (ids >= 8) & (ids < 16)
    assert (marked.sum(axis=1) == 1).all() and (ids[marked] - 8 == labels).all()
    assert (ids[:, -1] == 16).all() and (lengths == 10).all()

    ids, _, labels = Bites().batch(2)
    assert (ids[:16, ::-1] == ids[16:]).all() and labels.sum() == 16 and (ids[:, 0] != ids[:, 2]).all()
    for task in (Recall(5), Order(), Copy(), Retrieve(), Bites()):
        same, again, other = task.batch(4), task.batch(4), task.batch(5)
        assert all(np.array_equal(a, b) for a, b in zip(same, again, strict=True))
        assert not np.array_equal(same[0], other[0])
