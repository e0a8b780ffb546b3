"""The chat format of tuned models: its string, its tokens in every tokenizer, and the same by Jinja."""

from __future__ import annotations

import pytest

from chainrule.errors import ConfigError
from chainrule.io.tokenizers import described_tokenizer, to_hugging_face
from chainrule.text import (
    FORMATS,
    BPETokenizer,
    CharTokenizer,
    ChatTemplate,
    Conventions,
    LowercaseWordTokenizer,
    SentencePieceBPETokenizer,
    Tokenizer,
    UnigramTokenizer,
    Vocabulary,
    WordPieceTokenizer,
    chat_ids,
)
from chainrule.text.chat.formats import answer_end
from chainrule.text.chat.roles import END, TEMPLATE, TOKENS, chat_tokenizer, own_format
from tests.vectors import vector

TEXT = "What is the capital of France? The capital of France is Paris. Be brief, and why?"
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is it?"},
    {"role": "assistant", "content": " Paris. "},
    {"role": "user", "content": "why?"},
]
KINDS: dict[str, Tokenizer] = {
    "char": CharTokenizer.train(TEXT),
    "bpe": BPETokenizer.train(TEXT, 280, special_tokens=["</s>"]),
    "unigram": UnigramTokenizer.train(TEXT * 5, 300),
    "wordpiece": WordPieceTokenizer.train(TEXT, 120),
    "piece_bpe": SentencePieceBPETokenizer(
        Vocabulary(["<unk>", "▁", *sorted(set(TEXT) - {" "})], special=["<unk>"]), []
    ),
}


@pytest.mark.requirement("R-379")
def test_the_worked_example_and_the_token_that_ends_a_turn() -> None:
    example = vector("004-13.5.5-chat-format")
    turns = [{"role": role, "content": content} for role, content in example.inputs["turns"]]
    assert FORMATS["roles"].render(turns, add_generation_prompt=False) == example.recomputed + END
    assert (
        FORMATS["roles"].render(turns[:1]) + FORMATS["roles"].lead
        == example.recomputed.partition("The cap")[0]
    )


@pytest.mark.requirement("R-379")
@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_gets_the_roles_after_its_own_tokens(kind: str) -> None:
    before = KINDS[kind]
    after = chat_tokenizer(before)
    first = before.vocab_size
    assert [after.special_ids[name] for name in TOKENS] == list(range(first, first + 4))
    assert after.vocab_size == first + 4
    assert after.encode(TEXT).tolist() == before.encode(TEXT).tolist()  # texts as before
    ends = before.conventions.eos
    assert after.conventions.eos == (first + 3, *ends) and after.conventions.chat_template == TEMPLATE
    assert before.conventions.chat_template is None  # the other one is not changed
    assert chat_tokenizer(after) is after
    assert answer_end(after, own_format(after)) == after.special_ids[END]
    ids = chat_ids(after, own_format(after), TALK)
    assert [after.piece(id) for id in ids if id >= first] == [
        "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|user|>", "<|assistant|>",
    ]  # fmt: skip
    assert type(after).from_dict(after.to_dict()) == after


def test_a_pipeline_gets_them_too() -> None:
    described = to_hugging_face(KINDS["bpe"]) | {"normalizer": {"type": "Lowercase"}}
    before = described_tokenizer(described)
    after = chat_tokenizer(before)
    assert before.kind == "pipeline" and after.vocab_size == before.vocab_size + 4
    assert after.encode(TEXT).tolist() == before.encode(TEXT).tolist()


def test_tokens_that_are_there_already_are_used() -> None:
    before = BPETokenizer.train("", 258, special_tokens=["<|end|>", "<|user|>"])
    after = chat_tokenizer(before)
    assert after.special_ids == {"<|end|>": 256, "<|user|>": 257, "<|assistant|>": 258, "<|system|>": 259}


def test_a_model_with_a_template_keeps_it() -> None:
    tokenizer = BPETokenizer.train("", 258, special_tokens=["<s>", "</s>"])
    tokenizer.conventions = Conventions(eos=(257,), chat_template="{{ messages }}")
    assert chat_tokenizer(tokenizer) is tokenizer
    assert isinstance(own_format(tokenizer), ChatTemplate)


def test_a_tokenizer_without_special_tokens_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"a bare-word tokenizer has no place for <\|user\|>, <\|assistant\|>"
    ):
        chat_tokenizer(LowercaseWordTokenizer(["<unk>", "a"]))


@pytest.mark.parametrize("ask", [False, True])
def test_jinja_writes_the_same(ask: bool) -> None:
    tokenizer = chat_tokenizer(KINDS["bpe"])
    ours = FORMATS["roles"].render(TALK, add_generation_prompt=ask)
    assert ChatTemplate(TEMPLATE, tokenizer).render(TALK, add_generation_prompt=ask) == ours
