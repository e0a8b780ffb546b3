"""Splits by hash: disjoint, stable, in the shares asked for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, Document, DocumentBatches, Encoded, Split, read_documents, split
from chainrule.errors import ConfigError
from chainrule.models import Additive, NGram
from chainrule.text import CharTokenizer

ANY_TEXT = st.text(st.characters(), max_size=20)  # half surrogate pairs too


def documents(texts: list[str]) -> list[Document]:
    return [Document(text, "test", i) for i, text in enumerate(texts)]


@settings(max_examples=50)
@given(texts=st.lists(ANY_TEXT), seed=st.integers(0, 2**64 - 1), share=st.floats(0, 0.45))
def test_parts_are_disjoint_and_complete(texts: list[str], seed: int, share: float) -> None:
    parts = Split(validation=share, test=share, seed=seed)(documents(texts))
    train, validation, test = (
        {d.text for d in part} for part in (parts.train, parts.validation, parts.sealed)
    )
    assert not (train & validation or train & test or validation & test)  # copies are on one side
    together = [*parts.train, *parts.validation, *parts.sealed]
    assert sorted(together, key=lambda d: d.line) == documents(texts)


def test_examples_are_held_back_by_their_texts() -> None:
    rows = [(f"text {n}", n) for n in range(200)]
    split = Split(validation=0.2, test=0.3)
    training, validation = split.held_back(rows, lambda row: row[0])
    assert training == [row for row in rows if split.part(row[0]) == "train"]
    assert validation == [row for row in rows if split.part(row[0]) == "validation"] != []
    assert split.held_back(rows, lambda row: row[0], eval_only=True) == ([], rows)


@settings(max_examples=50)
@given(old=st.lists(ANY_TEXT), new=st.lists(ANY_TEXT))
def test_a_document_stays_where_it_is_when_others_come(old: list[str], new: list[str]) -> None:
    split = Split()
    before, after = split(documents(old)), split(documents(old + new))
    for part in ("train", "validation", "sealed"):
        was, now = getattr(before, part), getattr(after, part)
        assert now[: len(was)] == was


@pytest.mark.requirement("R-463")
def test_batches_of_the_training_part_hold_nothing_that_was_held_back() -> None:
    names = read_documents("docstrings")
    parts = Split()(documents([d.text[:200] for d in names]))
    tokenizer = CharTokenizer.train("".join(d.text for d in [*parts.train, *parts.validation, *parts.sealed]))
    train = Encoded.of([tokenizer.encode(d.text) for d in parts.train])
    batches = DocumentBatches(train, batch_size=64, block_size=256)
    seen = set()
    for step in range(-(-len(train) // 64)):
        for inputs, targets in zip(*batches.batch(step), strict=True):
            ids = targets[targets != IGNORE]
            seen.add(tokenizer.decode([inputs[0], *ids]))
    assert seen == {d.text for d in parts.train}
    assert (
        seen.isdisjoint(d.text for d in [*parts.validation, *parts.sealed])
        and parts.validation
        and parts.sealed
    )


@pytest.mark.requirement("R-205")
def test_settings_are_chosen_on_validation_and_the_test_set_is_opened_once() -> None:
    texts = [f"{'ab' * (i % 7)}{'c' * (i % 5)} {i}" for i in range(600)]
    parts = Split(validation=0.2, test=0.2)(documents(texts))
    tokenizer = CharTokenizer.train("".join(texts))

    def ids(part: list[Document]) -> list[list[int]]:
        return [(tokenizer.encode(d.text) + 1).tolist() for d in part]

    def fitted(smoothing: float) -> NGram:
        size = tokenizer.vocab_size + 1
        return NGram.fit(ids(parts.train), order=2, vocab_size=size, smoothing=Additive(smoothing))

    best = min((0.01, 0.1, 1.0, 10.0), key=lambda s: fitted(s).nll(ids(parts.validation)))
    assert parts.openings == []  # nothing was chosen by it
    assert math.isfinite(fitted(best).nll(ids(parts.open_test("the last judgment"))))
    assert parts.openings == ["the last judgment"]
    assert {d.text for d in parts.sealed}.isdisjoint(d.text for d in [*parts.train, *parts.validation])
    assert "sealed" not in repr(parts)  # nor does it slip out when the parts are printed


def test_the_shares_are_those_asked_for_and_the_seed_changes_the_choice() -> None:
    texts = [f"document {i}" for i in range(20_000)]
    parts = Split(validation=0.1, test=0.05)(documents(texts))
    assert len(parts.validation) == pytest.approx(2000, rel=0.1)
    assert len(parts.sealed) == pytest.approx(1000, rel=0.1)
    other = Split(validation=0.1, test=0.05, seed=1)(documents(texts))
    both = {d.text for d in parts.sealed} & {d.text for d in other.sealed}
    assert len(both) < 100
    assert not Split(validation=0, test=0)(documents(texts)).validation


@pytest.mark.parametrize("shares", [(-0.1, 0), (0.5, 0.5), (float("nan"), 0)])
def test_shares_must_leave_some_for_training(shares: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="must leave some for training"):
        Split(*shares)


def test_a_seed_must_be_one() -> None:
    with pytest.raises(ConfigError, match="seed"):
        Split(seed=-1)


def test_a_text_is_split_by_its_length() -> None:
    assert split("0123456789") == ("012345678", "9")
    with pytest.raises(ConfigError, match="fraction 1"):
        split("0123456789", 1.0)
