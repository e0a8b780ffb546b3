"""Batches for a BERT: which words are hidden, which pairs belong together."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, Encoded, MaskedBatches, MaskingRule, SpecialIds
from chainrule.errors import ConfigError, DataError
from tests.vectors import vector

SPECIAL = SpecialIds(cls=1, sep=2, mask=3, pad=0)
V = 5000


def documents(count: int, length: int, first: int = 10) -> Encoded:
    """Each token is its own place: id - first is where it stands."""
    return Encoded.of(first + np.arange(count * length).reshape(count, length))


def batches(found: Encoded, **options: Any) -> MaskedBatches:
    sizes: dict[str, Any] = {"vocab_size": V, "batch_size": 32, "block_size": 32, "next_sentence": True}
    return MaskedBatches(found, special=SPECIAL, **sizes | options)


def truth(ids: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The row as it was before words were hidden."""
    return np.where(targets == IGNORE, ids, targets)


def within(count: int, of: int, share: float) -> bool:
    """Four standard errors of a binomial draw."""
    return abs(count / of - share) <= 4 * sqrt(share * (1 - share) / of)


@pytest.mark.requirement("R-367")
def test_fractions() -> None:
    v = vector("der-mlm-fractions")
    hide, swap, _ = v.inputs["split"]
    v.check(list(MaskingRule(v.inputs["select"], hide, swap).fractions.values()))


@pytest.mark.requirement("R-367")
@pytest.mark.parametrize("next_sentence", [True, False])
def test_shares_of_selected_hidden_random_and_kept_tokens(next_sentence: bool) -> None:
    source = batches(documents(40, 100), next_sentence=next_sentence)
    places = selected = hidden = swapped = kept = 0
    for step in range(150):
        inputs, targets = source.batch(step)
        text = inputs.mask & ~np.isin(truth(inputs.ids, targets), SPECIAL)
        chosen = targets != IGNORE
        assert not (chosen & ~text).any()  # neither [CLS] nor [SEP] nor padding is asked for
        places += np.count_nonzero(text)
        selected += np.count_nonzero(chosen)
        hidden += np.count_nonzero(chosen & (inputs.ids == SPECIAL.mask))
        kept += np.count_nonzero(chosen & (inputs.ids == targets))
        swapped += np.count_nonzero(chosen & (inputs.ids != targets) & (inputs.ids != SPECIAL.mask))
        assert not np.isin(inputs.ids[chosen & (inputs.ids != SPECIAL.mask)], SPECIAL).any()
    assert within(selected, places, 0.15)
    assert within(hidden, selected, 0.8)
    assert within(swapped, selected, 0.1)  # but for one in 5,000 that is drawn as it was
    assert within(kept, selected, 0.1)


def test_random_tokens_come_from_the_whole_vocabulary() -> None:
    rule, rng = MaskingRule(select=1.0, hide=0.0, swap=1.0), np.random.default_rng(0)
    words = np.arange(10, 14)
    ids, targets = rule(np.full((50, 50), 12), np.ones((50, 50), bool), words, SPECIAL.mask, rng)
    assert all(within(int(np.count_nonzero(ids == word)), 2500, 0.25) for word in words)
    assert (targets == 12).all()


@pytest.mark.parametrize("shares", [(0.0, 0.8, 0.1), (1.1, 0.8, 0.1), (0.15, 0.9, 0.2), (0.15, -0.1, 0.2)])
def test_shares_that_cannot_be_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="masking: "):
        MaskingRule(*shares)


def parts(row: np.ndarray, mask: np.ndarray) -> list[np.ndarray]:
    """The texts between [CLS] and the [SEP]s of an unmasked row."""
    whole = row[mask]
    assert whole[0] == SPECIAL.cls and whole[-1] == SPECIAL.sep
    ends = np.flatnonzero(whole == SPECIAL.sep)
    return [whole[a + 1 : b] for a, b in zip([0, *ends], ends, strict=False)]


@pytest.mark.requirement("R-369")
def test_half_of_the_pairs_are_true_and_the_others_never() -> None:
    length = 90
    source = batches(documents(30, length))
    true = total = 0
    for step in range(60):
        inputs, targets = source.batch(step)
        for row, mask, segments, follows in zip(truth(inputs.ids, targets), *inputs[1:], strict=True):
            a, b = parts(row, mask)
            assert len(a) and len(b) and (np.diff(a) == 1).all() and (np.diff(b) == 1).all()
            assert follows == (b[0] == a[-1] + 1)
            if not follows:
                assert (a[0] - 10) // length != (b[0] - 10) // length  # another document
            assert segments[: len(a) + 2].sum() == 0 and segments.sum() == len(b) + 1
            true += follows
            total += 1
    assert abs(true / total - 0.5) <= 3 * sqrt(0.25 / total)


def test_length_tells_nothing_about_a_pair() -> None:
    """The text in place of B is as long as B, wherever its document is long enough."""
    source = batches(documents(30, 58))  # two windows of 29 each
    for step in range(20):
        assert source.batch(step)[0].mask.all()


def test_one_long_document_is_enough_for_pairs() -> None:
    source = batches(documents(1, 2000))
    for step in range(20):
        inputs, targets = source.batch(step)
        for row, mask, follows in zip(truth(inputs.ids, targets), inputs.mask, inputs.follows, strict=True):
            a, b = parts(row, mask)
            assert follows == (b[0] == a[-1] + 1)


def test_texts_begin_where_sentences_do() -> None:
    """With the ids that end a sentence, both true and other texts begin behind one of them."""
    end = 4
    found = Encoded.of([np.where(np.arange(116) % 8 == 7, end, 10 + i) for i in range(20)])  # windows of 29
    source = batches(found, ends=[end], rule=MaskingRule(select=1e-9))
    seen = set()
    for step in range(30):
        inputs, _ = source.batch(step)
        for row, mask, follows in zip(inputs.ids, inputs.mask, inputs.follows, strict=True):
            a, b = parts(row, mask)
            assert a[-1] == end
            if len(b) >= 8:
                assert b[7] == end  # it began with a sentence
                seen.add(int(follows))
    assert seen == {0, 1}


@pytest.mark.requirement("R-370")
def test_without_next_sentence_rows_are_packed_with_whole_windows() -> None:
    source = batches(documents(3, 70), next_sentence=False, batch_size=8)
    inputs, targets = source.batch(0)  # an epoch: each document is windows of 30, 30 and 10
    assert (inputs.follows == IGNORE).all() and not inputs.segments.any()
    rows = [parts(row, mask) for row, mask in zip(truth(inputs.ids, targets), inputs.mask, strict=True)]
    windows = [window for row in rows for window in row]
    assert sorted(np.concatenate(windows).tolist()) == list(range(10, 220))
    assert sorted(map(len, windows)) == [10, 10, 10, 30, 30, 30, 30, 30, 30]
    assert sorted([len(window) for window in row] for row in rows) == [[10], [10, 10], *[[30]] * 6]


def test_short_documents_are_packed_without_padding() -> None:
    """[CLS] and three texts of 9 tokens with their [SEP]: 31 of 32 places."""
    source = batches(documents(30, 9), next_sentence=False, batch_size=10)
    inputs, targets = source.batch(0)
    assert inputs.mask.all() and inputs.ids.shape == (10, 31)
    assert (inputs.ids[:, [10, 20, 30]] == SPECIAL.sep).all()
    assert (targets[:, [0, 10, 20, 30]] == IGNORE).all()
    assert source.tokens == round(10 * 27 * source.rule.select)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=2, max_size=8),
    block_size=st.integers(5, 20),
    next_sentence=st.booleans(),
    pool=st.integers(1, 3),
    step=st.integers(0, 10**9),
)
def test_any_documents_give_rows_that_fit_and_the_same_at_every_call(
    lengths: list[int], block_size: int, next_sentence: bool, pool: int, step: int
) -> None:
    found = Encoded.of([np.arange(n) + 10 for n in lengths])
    options: dict[str, Any] = {"block_size": block_size, "next_sentence": next_sentence, "pool": pool}
    try:
        source = batches(found, **options, batch_size=5)
    except DataError as error:
        assert sum(n >= 2 for n in lengths) < 2 and "documents: " in str(error)
        return
    inputs, targets = source.batch(step)
    assert inputs.ids.shape == inputs.mask.shape == inputs.segments.shape == targets.shape
    assert inputs.ids.shape[1] <= block_size and (inputs.ids[:, 0] == SPECIAL.cls).all()
    assert (inputs.ids[~inputs.mask] == SPECIAL.pad).all() and inputs.ids.max() < V
    again, same = batches(found, **options, batch_size=5).batch(step)
    assert all((a == b).all() for a, b in zip((*inputs, targets), (*again, same), strict=True))


def test_what_is_hidden_changes_from_epoch_to_epoch() -> None:
    source = batches(documents(4, 29), batch_size=4)
    assert len({source.batch(step)[1].tobytes() for step in range(10)}) == 10


@pytest.mark.parametrize(
    ("found", "options", "message"),
    [
        (documents(2, 30), {"block_size": 4}, r"block_size is 4 \(must be at least 5"),
        (
            documents(2, 30),
            {"block_size": 2, "next_sentence": False},
            r"block_size is 2 \(must be at least 3",
        ),
        (documents(1, 20), {}, r"a single window \(next sentence needs a second"),
        (documents(3, 1), {}, r"none of 3 has 2 tokens"),
    ],
)
def test_what_gives_no_batch_is_refused(found: Encoded, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        batches(found, **options)
