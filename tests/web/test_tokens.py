"""The token views: pieces and merges are those of the library, and of the programs they are copied as."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule as cr
from chainrule.text.textbook_bpe import trace
from chainrule.web import tokens


def test_pieces_are_those_of_the_program(ask: Any) -> None:
    found = ask("/api/tokens/pieces", text=tokens.EXAMPLE, size=600)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert [each["name"] for each in found["tokenizers"]] == [*names["pieces"]]
    for each in found["tokenizers"]:
        mine = names["pieces"][each["name"]]
        if each["error"]:
            assert isinstance(mine, cr.DataError) and each["error"] == str(mine)
        else:
            assert each["pieces"] == mine
            tokenizer = names["tokenizers"][each["name"]]
            assert each["size"] == tokenizer.vocab_size
            assert each["lossless"] == (tokenizer.decode(each["ids"]) == tokens.EXAMPLE)


def test_every_kind_of_tokenizer_that_can_be_learned_is_there() -> None:
    from chainrule.text.tokenizer import _subclasses

    ours = [cls for cls in _subclasses(cr.text.Tokenizer) if cls.__module__.startswith("chainrule.")]
    learned = {cls for cls in ours if hasattr(cls, "train")}
    assert {type(tokens.trained(name, 600)) for name, _, _ in tokens.KINDS} == learned


def test_a_plain_text_comes_back_whole(ask: Any) -> None:
    found = {
        each["name"]: each
        for each in ask("/api/tokens/pieces", text="print the value", size=600)["tokenizers"]
    }
    assert found["Byte pairs"]["lossless"] and found["Characters"]["per_token"] == 1
    assert not found["Words"]["error"]


def test_no_text_has_no_pieces(ask: Any) -> None:
    assert all(each["ids"] == [] for each in ask("/api/tokens/pieces", text="", size=600)["tokenizers"])


def test_merges_are_those_of_training(ask: Any) -> None:
    found = ask("/api/tokens/merges", text="low lower lowest low")
    steps = list(trace(["low", "lower", "lowest", "low"]))
    assert [each["words"] for each in found["steps"]] == [step.words for step in steps]
    assert [(tuple(each["pair"]), each["count"]) for each in found["steps"]] == [
        (s.pair, s.count) for s in steps
    ]
    assert found["start"][0] == ["l", "o", "w"] and found["counts"] == [2, 1, 1] and found["alphabet"] == 7
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert [step.words for step in names["steps"]] == [step.words for step in steps]


@pytest.mark.parametrize(
    ("path", "params", "said"),
    [
        ("pieces", {"text": "a", "size": 10}, "size is 10 (must be from 300 to 8000)"),
        ("pieces", {"text": "a", "size": "x"}, "size: "),
        ("mask", {"text": "assistant: a", "size": 9}, "size is 9 (must be from 300 to 8000)"),
        ("pieces", {"text": "a" * 4001}, "4,001 characters (at most 4,000 are shown)"),
        ("merges", {"text": "  "}, "no words to merge"),
    ],
)
def test_refusals(ask: Any, path: str, params: dict[str, Any], said: str) -> None:
    assert said in ask(f"/api/tokens/{path}", status=400, **params)["error"]


def test_the_loss_mask_is_that_of_a_training(ask: Any) -> None:
    found = ask("/api/tokens/mask", text=tokens.TALK, size=600)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    shown = names["view"][0]
    assert [(each["id"], each["trained"]) for each in found["tokens"]] == [
        (t.id, t.trained) for t in shown.tokens
    ]
    assert found["text"] == shown.trained_text and "Paris" in found["text"] and "France?" not in found["text"]
    cut = ask("/api/tokens/mask", text=tokens.TALK, size=600, window=60)
    assert cut["lost"] > 0 and cut["trained"] < found["trained"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "'hello' (must begin with one of system, user, assistant and a colon)"),
        ("user: a", "must end with an answer"),
        ("", "must end with an answer"),
    ],
)
def test_what_is_no_conversation_is_refused(ask: Any, text: str, said: str) -> None:
    assert said in ask("/api/tokens/mask", status=400, text=text, size=600)["error"]
