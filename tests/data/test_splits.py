"""Splits by hash: disjoint, stable, in the shares asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, Document, DocumentBatches, Encoded, Split, read_documents
from chainrule.errors import ConfigError
from chainrule.text import CharTokenizer

ANY_TEXT = st.text(st.characters(), max_size=20)  # half surrogate pairs too


def documents(texts: list[str]) -> list[Document]:
    return [Document(text, "test", i) for i, text in enumerate(texts)]


@settings(max_examples=50)
@given(texts=st.lists(ANY_TEXT), seed=st.integers(0, 2**64 - 1), share=st.floats(0, 0.45))
def test_parts_are_disjoint_and_complete(texts: list[str], seed: int, share: float) -> None:
    parts = Split(validation=share, test=share, seed=seed)(documents(texts))
    train, validation, test = ({d.text for d in part} for part in (parts.train, parts.validation, parts.test))
    assert not (train & validation or train & test or validation & test)  # copies are on one side
    together = [*parts.train, *parts.validation, *parts.test]
    assert sorted(together, key=lambda d: d.line) == documents(texts)


@settings(max_examples=50)
@given(old=st.lists(ANY_TEXT), new=st.lists(ANY_TEXT))
def test_a_document_stays_where_it_is_when_others_come(old: list[str], new: list[str]) -> None:
    split = Split()
    before, after = split(documents(old)), split(documents(old + new))
    for part in ("train", "validation", "test"):
        was, now = getattr(before, part), getattr(after, part)
        assert now[: len(was)] == was


@pytest.mark.requirement("R-463")
def test_batches_of_the_training_part_hold_nothing_that_was_held_back() -> None:
    names = read_documents("docstrings")
    parts = Split()(documents([d.text[:200] for d in names]))
    tokenizer = CharTokenizer.train("".join(d.text for d in [*parts.train, *parts.validation, *parts.test]))
    train = Encoded.of([tokenizer.encode(d.text) for d in parts.train])
    batches = DocumentBatches(train, batch_size=64, block_size=256)
    seen = set()
    for step in range(-(-len(train) // 64)):
        for inputs, targets in zip(*batches.batch(step), strict=True):
            ids = targets[targets != IGNORE]
            seen.add(tokenizer.decode([inputs[0], *ids]))
    assert seen == {d.text for d in parts.train}
    assert (
        seen.isdisjoint(d.text for d in [*parts.validation, *parts.test]) and parts.validation and parts.test
    )


def test_the_shares_are_those_asked_for_and_the_seed_changes_the_choice() -> None:
    texts = [f"document {i}" for i in range(20_000)]
    parts = Split(validation=0.1, test=0.05)(documents(texts))
    assert len(parts.validation) == pytest.approx(2000, rel=0.1)
    assert len(parts.test) == pytest.approx(1000, rel=0.1)
    other = Split(validation=0.1, test=0.05, seed=1)(documents(texts))
    both = {d.text for d in parts.test} & {d.text for d in other.test}
    assert len(both) < 100
    assert not Split(validation=0, test=0)(documents(texts)).validation


@pytest.mark.parametrize("shares", [(-0.1, 0), (0.5, 0.5), (float("nan"), 0)])
def test_shares_must_leave_some_for_training(shares: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="must leave some for training"):
        Split(*shares)
