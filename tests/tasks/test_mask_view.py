"""The view of a mask shows what is trained, token by token, and can be asserted."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.data import Conversation
from chainrule.tasks import InstructionTask
from chainrule.tasks.mask_view import ANSWER, CUT, DROPPED, END, GIVEN, MARK, mask_view
from chainrule.text import BPETokenizer, CharTokenizer
from chainrule.text.chat.roles import chat_tokenizer
from chainrule.types import IGNORE
from tests.tasks.test_instruction import CORPUS, TALKS, TOKENIZER, base

LONG = Conversation.of("Why?", "Because it is so.")


@pytest.mark.requirement("R-378", "R-379")
def test_every_token_has_its_reason() -> None:
    (shown,) = mask_view(CharTokenizer.train("Why? yes"), [Conversation.of("Why?", "yes")])
    assert (shown.number, shown.row, shown.start, shown.trained_text) == (0, 0, 0, " yes<|end|>")
    assert [(reason, trained, "".join(texts)) for reason, trained, texts in shown.runs()] == [
        (MARK, False, "<|user|>"),
        (GIVEN, False, " Why? "),
        (MARK, False, "<|assistant|>"),
        (ANSWER, True, " yes"),
        (END, True, "<|end|>"),
    ]
    assert shown.lost == 0 and shown.to_dict()["tokens"][0]["text"] == "<|user|>"


def test_what_is_cut_or_dropped_is_shown() -> None:
    tokenizer = CharTokenizer.train("Why? Because it is so. " + "y")
    view = mask_view(tokenizer, [LONG, Conversation.of("y" * 40, "so")], window=12)
    assert (view.window, view.rows, view.conversations, view.cut, view.dropped, len(view)) == (
        12,
        1,
        2,
        1,
        1,
        2,
    )
    assert view[0].trained_text == " Beca" and view[0].tokens[-1].reason == CUT
    assert "".join(token.text for token in view[0].tokens if token.reason == CUT) == "use it is so.<|end|>"
    assert view[1].row is None and {token.reason for token in view[1].tokens} == {DROPPED}


def test_it_is_what_a_training_reads() -> None:
    """Every target of every row, in the order of the packing."""
    task = InstructionTask.of(CORPUS, TOKENIZER, eval_only=True)
    task = task.fitted(task.begun_with(base(), 0))
    batches = task.cut(task.validation, base(), 1)
    view = mask_view(TOKENIZER, TALKS, window=48)
    assert view.rows == len(batches.rows)
    for row in range(view.rows):
        here = sorted((each for each in view if each.row == row), key=lambda each: each.start)
        trained = [token.id for each in here for token in each.tokens if token.trained]
        targets = batches.row(row)[1]
        assert trained == targets[targets != IGNORE].tolist()
        assert all(each.trained_text == f" {TALKS[each.number].answer}<|end|>" for each in here)


def test_the_first_of_many_are_shown_in_the_packing_of_all() -> None:
    view = mask_view(TOKENIZER, TALKS, limit=2)
    assert [each.number for each in view] == [0, 1] and view.conversations == len(TALKS)
    assert view.window == max(len(token.tokens) for token in mask_view(TOKENIZER, TALKS)) - 1


def test_bytes_of_a_character_are_shown() -> None:
    tokenizer = chat_tokenizer(BPETokenizer.train("", 256))
    (shown,) = mask_view(tokenizer, [Conversation.of("a", "é")])
    assert [token.id for token in shown.tokens if token.trained] == [*tokenizer.encode(" é"), 259]
    assert np.all([isinstance(token.text, str) for token in shown.tokens])
