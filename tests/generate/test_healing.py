"""Token healing: a space at the end of a prompt is read as the beginning of the next word."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.generate import Beam, Sampling, complete, write
from chainrule.generate.healing import Prompt
from chainrule.generate.sample import encoded, prompted
from chainrule.models import GPT, GPTConfig
from chainrule.tasks import AnswerOptions, LanguageModelingTask
from chainrule.text import BPETokenizer, CharTokenizer, Tokenizer, UnigramTokenizer, WordPieceTokenizer

TEXT = "def low(lower):\n    return the lowest\n\ndef lower(low):\n    return the low\n" * 3


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer.train(TEXT, 275)


@pytest.fixture(scope="module")
def model(tokenizer: BPETokenizer) -> GPT:
    cr.seed(3)
    model = GPT(
        GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=32, vocab_size=tokenizer.vocab_size, dropout=0.0)
    )
    model.wte.weight.data *= 5  # distinct probabilities
    return model


def test_the_space_is_taken_back_and_written_by_the_first_token(model: GPT, tokenizer: BPETokenizer) -> None:
    begun = prompted(tokenizer, "return ")
    assert tokenizer.decode(begun.ids) == "return" and begun.typed == " "
    for seed in range(20):
        sampling = Sampling(max_new_tokens=3, temperature=2.0, seed=seed)
        (request,) = complete(model, tokenizer, ["return "], sampling)
        assert tokenizer.tokens[request.tokens[0]].startswith(b" ")
        assert " " + request.text == tokenizer.decode(request.tokens)  # the space is not written twice


@pytest.mark.parametrize("prompt", ["return", "return\n", "", "re", "\n"])
def test_any_other_prompt_keeps_its_tokens(tokenizer: BPETokenizer, prompt: str) -> None:
    begun = prompted(tokenizer, prompt)
    assert (begun.ids == encoded(tokenizer, prompt)).all() and begun.typed == ""


@pytest.mark.parametrize("prompt", [" ", "   "])
def test_a_prompt_of_spaces_alone_has_nothing_before_them(tokenizer: BPETokenizer, prompt: str) -> None:
    assert (prompted(tokenizer, prompt).ids == encoded(tokenizer, prompt)).all()


def test_indentation_is_spelled_as_in_the_middle_of_a_text(tokenizer: BPETokenizer) -> None:
    """The last of four spaces belongs to the word: "   " and " return", which no text that ends there has."""
    begun = prompted(tokenizer, "def low(lower):\n    ")
    assert begun.typed == "    " and tokenizer.decode(begun.ids) == "def low(lower):\n"
    written = tokenizer.encode("def low(lower):\n    return").tolist()[len(begun.ids) :]
    scores = np.zeros(tokenizer.vocab_size, np.float32)
    for n, token in enumerate(written):
        assert begun.limit(scores, written[:n])[token] == 0
    assert (begun.limit(scores, written) == 0).all()
    wrong = int(tokenizer.encode("x")[0])
    assert begun.limit(scores, [])[wrong] == -np.inf


def test_alone_in_a_batch_streamed_and_searched_it_is_the_same(model: GPT, tokenizer: BPETokenizer) -> None:
    prompts = ["return ", "def", "the   "]
    sampling = Sampling(max_new_tokens=5, temperature=0, stop=("zzz",))
    together = [request.text for request in complete(model, tokenizer, prompts, sampling, scored=True)]
    alone = [request.text for p in prompts for request in complete(model, tokenizer, [p], sampling)]
    streamed = ["".join(write(model, tokenizer, p, 5, temperature=0)) for p in prompts]
    searched = LanguageModelingTask.answer(
        model, tokenizer, prompts, AnswerOptions(beam=Beam(width=1, max_new_tokens=5), logprobs=True)
    )
    assert together == alone == streamed == [found["text"] for found in searched]


def test_a_stop_string_is_not_found_in_what_was_typed(model: GPT, tokenizer: BPETokenizer) -> None:
    the = tokenizer.ids[b" the"]
    sampling = Sampling(max_new_tokens=2, stop=(" ",), logit_bias={the: 1e3})
    (request,) = complete(model, tokenizer, ["return "], sampling)
    assert request.tokens == [the, the] and (request.text, request.finish) == ("the", "stop")


@pytest.mark.parametrize(
    "tokenizer",
    [CharTokenizer.train(TEXT), BPETokenizer.train("", 256), WordPieceTokenizer.train([TEXT], 60)],
)
def test_where_no_token_begins_with_a_space_there_is_nothing_to_heal(tokenizer: Tokenizer) -> None:
    assert (prompted(tokenizer, "return ").ids == encoded(tokenizer, "return ")).all()


def test_unigram_pieces_carry_the_space_too() -> None:
    tokenizer = UnigramTokenizer.train([TEXT], 300)
    begun = prompted(tokenizer, "the ")
    assert begun.typed == " " and len(begun.ids) < len(encoded(tokenizer, "the "))


def test_what_leaves_no_way_to_spell_the_rest_cannot_follow() -> None:
    prompt = Prompt([0], "  \t", b"  \t", [b"a", b" ", b"  ", b" \tb", b"   "])
    scores = np.zeros(5, np.float32)
    assert (prompt.limit(scores, []) == 0).tolist() == [False, True, False, False, False]  # " " and " \tb"
    assert (prompt.limit(scores, [1]) == 0).tolist() == [False, False, False, True, False]
