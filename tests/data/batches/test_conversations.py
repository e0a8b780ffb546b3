"""Packed conversations: nothing is cut silently, no row is without a target, and only answers are learned."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import IGNORE, ConversationBatches
from chainrule.data.batches.conversations import Chats, Fitted
from chainrule.errors import DataError

SIZES = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=20)


def chats(*sizes: tuple[int, int]) -> Chats:
    """Conversations of so many given and learned tokens; every token is another."""
    rows, first = [], 0
    for given_tokens, learned in sizes:
        n = given_tokens + learned
        rows.append((np.arange(first, first + n, dtype=np.int32), np.arange(n) >= given_tokens))
        first += n
    return Chats.of(rows)


@pytest.mark.requirement("R-377")
def test_tokens_of_both_parts_are_counted() -> None:
    found = chats((3, 2), (1, 4), (2, 0))
    assert (found.prompts.tolist(), found.answers.tolist()) == ([3, 1, 2], [2, 4, 0])
    assert found.some([2, 0]).answers.tolist() == [0, 2]


@settings(max_examples=60)
@given(sizes=SIZES, block=st.integers(1, 16), seed=st.integers(0, 2**32))
def test_every_answer_within_the_window_is_learned_once(
    sizes: list[tuple[int, int]], block: int, seed: int
) -> None:
    found = chats(*sizes)
    starts = found.documents.starts
    want = [
        int(place)
        for start, end in pairwise(starts.tolist())
        for place in range(start + 1, min(end, start + block + 1))
        if found.learned[place]
    ]
    if not want:
        with pytest.raises(DataError, match="has an answer within"):
            ConversationBatches(found, batch_size=1, block_size=block)
        return
    batches = ConversationBatches(found, batch_size=1, block_size=block, seed=seed)
    fitted = batches.fitted
    assert len(fitted.kept) + len(fitted.dropped) == len(sizes)
    longer = {number for number, (a, b) in enumerate(sizes) if a + b > block + 1}
    assert set(fitted.cut.tolist()) == longer - set(fitted.dropped.tolist())
    learned: list[int] = []
    for step in range(len(batches.rows)):
        inputs, targets = batches.batch(step)
        assert (targets != IGNORE).any()  # no row without a target
        counted = targets != IGNORE
        assert (targets[counted] == inputs.ids[counted] + 1).all()  # of the same conversation
        assert (inputs.segments[counted] > 0).all()
        learned += targets[counted].tolist()
    assert sorted(learned) == want
    alone = [int(t) for _, targets in batches.once() for t in targets[targets != IGNORE]]
    assert sorted(alone) == want
    assert batches.tokens == max(1, round(len(want) / len(batches.rows)))


def test_what_is_cut_and_dropped_is_said() -> None:
    found = Fitted.of(chats((3, 2), (3, 9), (8, 2)), 6)
    assert (found.kept.tolist(), found.cut.tolist(), found.dropped.tolist()) == ([0, 1], [1], [2])
    assert str(found) == "1 cut at the end of the window, 1 dropped (no answer would be left)"
    assert str(Fitted.of(chats((3, 2)), 6)) == "none cut, none dropped"
    batches = ConversationBatches(chats((3, 2), (3, 9), (8, 2), (1, 1)), batch_size=1, block_size=6)
    assert batches.truncated == 0.5


def test_conversations_stand_alone_to_be_evaluated() -> None:
    batches = ConversationBatches(chats((2, 3), (1, 1), (2, 2)), batch_size=2, block_size=10)
    (first, _), (second, targets) = batches.once()
    assert first.tolist() == [[5, 0, 0], [7, 8, 9]]  # by length, padded to the longest
    assert (second.tolist(), targets.tolist()) == ([[0, 1, 2, 3]], [[IGNORE, 2, 3, 4]])
