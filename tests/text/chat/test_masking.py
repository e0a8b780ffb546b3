"""Which tokens of a conversation are learned, in our format and in those of other models."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import FormatError
from chainrule.text import FORMATS, BPETokenizer, ChatTemplate, chat_ids
from chainrule.text.chat.masking import masked_ids
from chainrule.text.chat.roles import chat_tokenizer, own_format
from tests.text.chat.test_template import CHATML

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi <|end|>"},
    {"role": "assistant", "content": "Hello <|im_end|>"},
    {"role": "user", "content": "Bye"},
    {"role": "assistant", "content": "Goodbye"},
]
PLAIN = BPETokenizer.train(
    "Hello hello Goodbye bye Hi Be brief", 280, special_tokens=["<|im_start|>", "<|im_end|>"]
)


@pytest.mark.requirement("R-378", "R-379")
def test_answers_and_the_ends_of_their_turns_are_learned() -> None:
    tokenizer = chat_tokenizer(PLAIN)
    ((ids, learned),) = masked_ids(tokenizer, own_format(tokenizer), [TALK])
    ends = [tokenizer.special_ids["<|end|>"]]
    found = np.split(ids[learned], np.flatnonzero(np.diff(np.flatnonzero(learned)) > 1) + 1)
    assert [tokenizer.decode(part) for part in found] == [" Hello <|im_end|><|end|>", " Goodbye<|end|>"]
    assert [part[-1] for part in found] == ends * 2
    assert np.count_nonzero(ids == ends[0]) == 2  # what a person writes is ordinary text
    assert (
        tokenizer.decode(ids[~learned])
        == "<|system|> Be brief. <|user|> Hi <|end|> <|assistant|><|user|> Bye <|assistant|>"
    )


def test_training_reads_what_chat_will_read() -> None:
    tokenizer = chat_tokenizer(PLAIN)
    for format in (own_format(tokenizer), FORMATS["chatml"]):
        ((ids, learned),) = masked_ids(tokenizer, format, [TALK])
        answers = np.flatnonzero(np.diff(learned.astype(int)) == 1) + 1
        for place, upto in zip(answers, (2, 4), strict=True):
            assert ids[:place].tolist() == chat_ids(tokenizer, format, TALK[:upto]).tolist()


def test_the_template_of_another_model() -> None:
    template = ChatTemplate(CHATML, PLAIN)
    found = masked_ids(PLAIN, template, [TALK, TALK[1:3]])
    texts = [PLAIN.decode(ids[learned]) for ids, learned in found]
    assert texts == ["Hello <|im_end|><|im_end|>Goodbye<|im_end|>", "Hello <|im_end|><|im_end|>"]
    same = masked_ids(PLAIN, FORMATS["chatml"], [TALK, TALK[1:3]])
    assert [ids.tolist() for ids, _ in found] == [ids.tolist() for ids, _ in same]


def test_a_play_with_two_speakers_learns_lines() -> None:
    ((ids, learned),) = masked_ids(PLAIN, FORMATS["plain"], [TALK[3:]])
    assert PLAIN.decode(ids[learned]) == "Goodbye\n"


def test_a_template_that_changes_earlier_turns_is_refused() -> None:
    """As those that leave out what was thought in earlier answers: their texts are not those of a conversation."""
    last = "{% for m in messages %}{{ m['content'] if loop.last else '-' }}{% endfor %}"
    with pytest.raises(
        FormatError, match=r"message 2 changes what stands before it .must write one turn after"
    ):
        masked_ids(PLAIN, ChatTemplate(last, PLAIN), [TALK])


def test_no_conversations() -> None:
    assert masked_ids(PLAIN, FORMATS["chatml"], []) == []
