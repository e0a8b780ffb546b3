"""Conversations in every layout, and records that are refused by their line."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.data.read.chat.layouts import Conversation, conversations_in
from chainrule.errors import DataError

ASK, SAY = "What is 2 + 2?", "It is 4."


def told(role: str, content: Any = "x") -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.mark.requirement("R-377")
@pytest.mark.parametrize(
    "record",
    [
        {"messages": [told("user", ASK), told("assistant", SAY)]},
        {"conversations": [{"from": "human", "value": ASK}, {"from": "gpt", "value": SAY}]},
        {"conversations": [told("user", ASK), told("assistant", SAY)]},
        {"instruction": ASK, "output": SAY},
        {"instruction": ASK, "input": "", "output": SAY},
        {"instruction": ASK, "input": None, "output": f" {SAY}\r\n", "id": 3},
        {"instruction": ASK, "instances": [{"input": "", "output": SAY}], "is_classification": False},
        {"prompt": ASK, "completion": f"{SAY}<|endoftext|>"},
        {"prompt": ASK, "response": f"{SAY}</s>"},
        {"question": ASK, "answer": SAY},
        {"instruction": ASK, "output": SAY, "chosen": "other", "rejected": "another"},
    ],
    ids=lambda record: " ".join(record),
)
def test_every_layout_gives_the_same_conversation(record: dict[str, Any]) -> None:
    assert list(conversations_in(record, "x: line 1")) == [Conversation.of(ASK, SAY)]


def test_an_input_follows_its_instruction_and_a_system_comes_first() -> None:
    record = {"instruction": "Translate.", "input": "sea", "output": "Meer", "system": "Be brief."}
    (found,) = conversations_in(record, "x")
    assert found.messages == [
        told("system", "Be brief."),
        told("user", "Translate.\n\nsea"),
        told("assistant", "Meer"),
    ]
    several = {"instruction": "Translate.", "instances": [{"input": a, "output": b} for a, b in ("xX", "yY")]}
    assert [each.question for each in conversations_in(several, "x")] == [
        "Translate.\n\nx",
        "Translate.\n\ny",
    ]


def test_many_turns_are_one_conversation() -> None:
    turns = [
        told("system"),
        told("user", "a"),
        told("assistant", "b"),
        told("user", "c"),
        told("assistant", "d"),
    ]
    (found,) = conversations_in({"messages": turns}, "x")
    assert (found.question, found.answer, len(found.turns)) == ("a", "d", 5)


@pytest.mark.requirement("R-377")
@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"instruction": ASK}, "x.jsonl: line 7 has 'instruction', but no 'output' (must have both)"),
        ({"output": SAY}, "line 7 has 'output', but no 'instruction' (must have both)"),
        ({"prompt": ASK}, "line 7 has 'prompt', but no 'completion' or 'response'"),
        (
            {"instruction": ASK, "output": " "},
            "line 7 has an empty 'output' (must be a text: fill it, or take",
        ),
        ({"prompt": ASK, "completion": "</s>"}, "line 7 has an empty 'completion'"),
        ({"prompt": "", "completion": SAY}, "line 7 has an empty 'prompt'"),
        ({"prompt": ASK, "completion": 4}, "line 7 has a int as 'completion' (must be a text)"),
        ({"prompt": ASK, "completion": None}, "line 7 has no 'completion' (must be a text)"),
        ({"prompt": ASK, "chosen": "a", "rejected": "b"}, "line 7 holds a preference, chosen and rejected"),
        (
            {"text": "x"},
            "line 7: fields 'text' (must be one of: messages, conversations, instruction and output, prompt",
        ),
        ({"messages": []}, "line 7: 'messages' is empty (must be a list of at least one)"),
        ({"messages": "hi"}, "line 7: 'messages' is a str (must be a list"),
        ({"messages": ["hi"]}, "'messages', message 0: a str (must have a role of system, user, assistant"),
        ({"messages": [told("human")]}, "'messages', message 0: role 'human' (must have a role of system"),
        ({"conversations": [{"from": "bot", "value": "x"}]}, "message 0: from 'bot' (must have a role of"),
        ({"conversations": [{"from": "human"}]}, "message 0 has no 'value' (must be a text)"),
        ({"messages": [told("user"), told("system")]}, "message 1: a system's message after others"),
        ({"messages": [told("user", "")]}, "message 0 has an empty 'content'"),
        ({"messages": [told("user")]}, "no message of the assistant (must have a question and its answer)"),
        ({"messages": [told("assistant")]}, "no message of the user"),
        ({"messages": [told("user"), told("assistant"), told("user")]}, "the last message is the user's"),
        ({"instruction": ASK, "instances": []}, "'instances' is empty"),
        ({"instruction": ASK, "instances": [3]}, "instance 0 is a int (must have an input and an output)"),
        ({"instruction": ASK, "instances": [{"input": ""}]}, "instance 0 has no 'output'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_missing_is_refused_by_its_line(record: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as error:
        list(conversations_in(record, "x.jsonl: line 7"))
    assert said in str(error.value)
