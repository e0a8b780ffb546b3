"""Sampling: seeded, greedy at temperature 0, true to the probabilities, cropped to the context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleError, ConfigError, DataError
from chainrule.generate import Decoder, Sampling, choose, generate, stream, write
from chainrule.generate.sample import encoded
from chainrule.models import GPT, GPTConfig
from chainrule.random import generator
from chainrule.text import (
    BPETokenizer,
    CharTokenizer,
    TextbookBPETokenizer,
    Tokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)


@pytest.fixture(scope="module")
def model() -> GPT:
    cr.seed(3)
    model = GPT(GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10, dropout=0.5))
    model.wte.weight.data *= 5  # distinct probabilities
    return model


def test_the_same_seed_writes_the_same(model: GPT) -> None:
    one = generate(model, [1, 2], 30, temperature=1.0, seed=4)
    assert (generate(model, [1, 2], 30, temperature=1.0, seed=4) == one).all()
    assert (generate(model, [1, 2], 30, temperature=1.0, seed=5) != one).any()
    assert list(stream(model, [1, 2], 30, temperature=1.0, seed=4)) == one.tolist()


def test_more_tokens_begin_with_the_same_ones(model: GPT) -> None:
    assert generate(model, [1], 20, seed=1).tolist() == generate(model, [1], 35, seed=1)[:20].tolist()


@pytest.mark.requirement("R-476")
def test_greedy_takes_the_likeliest_and_draws_follow_the_probabilities(model: GPT) -> None:
    logits = Decoder(model).prefill([1, 2, 3])[0]
    assert choose(logits, generator("test"), Sampling(temperature=0)) == logits.argmax()
    assert len({tuple(generate(model, [1], 20, temperature=0, seed=seed)) for seed in range(3)}) == 1

    n, temperature = 5_000, 1.5
    drawn = [choose(logits, generator("test", i), Sampling(temperature=temperature)) for i in range(n)]
    p = np.exp(logits.astype(np.float64) / temperature)
    p /= p.sum()
    error = np.sqrt(p * (1 - p) / n)
    assert (np.abs(np.bincount(drawn, minlength=10) / n - p) < 3 * error + 1e-12).all()


def test_top_k_leaves_the_k_likeliest() -> None:
    logits = np.array([0.0, 2.0, 1.0, 2.0])
    drawn = {choose(logits, generator("test", i), Sampling(temperature=1.0, top_k=2)) for i in range(50)}
    assert drawn == {1, 3}
    assert {
        choose(logits, generator("test", i), Sampling(temperature=9.0, top_k=99)) for i in range(200)
    } == {0, 1, 2, 3}
    assert (
        choose(logits, generator("test"), Sampling(temperature=1.0, top_k=1)) == 1
    )  # of equal ones the first


@pytest.mark.requirement("R-478", "R-273")
def test_one_token_is_enough_and_the_window_slides(model: GPT) -> None:
    assert generate(model, [7], 3 * model.config.block_size).shape == (24,)
    prompt = np.arange(20) % 10
    assert (generate(model, prompt, 5, seed=2) == generate(model, prompt[-8:], 5, seed=2)).all()


def test_sampling_is_without_dropout_and_leaves_the_mode_alone(model: GPT) -> None:
    model.train()
    assert (Decoder(model).prefill([1, 2]) == Decoder(model).prefill([1, 2])).all()
    assert model.training and model.h[0].attn.training


def test_the_cache_changes_no_token_while_the_text_fits_the_context(model: GPT) -> None:
    for temperature in (0, 1.0):
        written = generate(model, [3, 1], 6, temperature=temperature, seed=7)
        window = [3, 1]
        with cr.no_grad():
            for position, token in enumerate(written):
                logits = model.eval()(np.array([window])).numpy()[0, -1]
                rng = generator("sample", position, seed=7)
                assert token == choose(logits, rng, Sampling(temperature=temperature))
                window.append(token)
    model.train()


def test_a_full_context_keeps_its_newest_half(model: GPT) -> None:
    """With a context of 8, the tokens after the eighth follow the newest four, then five, ... up to eight."""
    written = generate(model, [3, 1], 15, temperature=0).tolist()
    text = [3, 1, *written]
    for start, end in ((5, 9), (5, 13), (10, 14)):
        assert text[end] == generate(model, text[start:end], 1, temperature=0)[0]


def test_formats_of_weights_are_an_option(model: GPT) -> None:
    tokenizer = CharTokenizer("abcdefghi\n")
    for weights in ("fp32", "bf16", "int8", "int4"):
        tokens = generate(model, [1, 2], 9, seed=3, weights=weights)
        assert tokens.tolist() == list(stream(model, [1, 2], 9, seed=3, weights=weights))
        assert len(list(write(model, tokenizer, "a", 3, weights=weights))) == 3
    with pytest.raises(ConfigError, match=r"'int3'.*fp32, bf16, fp16, int8, int4"):
        stream(model, [1], 3, weights="int3")


@pytest.mark.requirement("R-337")
def test_from_a_string_to_a_distribution_and_on_to_text(model: GPT) -> None:
    tokenizer = CharTokenizer("abcdefghi\n")
    p = cr.ops.softmax(Decoder(model).prefill(tokenizer.encode("bad"))[0])
    assert p.shape == (10,) and p.sum() == pytest.approx(1, abs=1e-6)
    pieces = list(write(model, tokenizer, "bad", 12, seed=1))
    assert len(pieces) == 12 and set("".join(pieces)) <= set(tokenizer.characters)
    assert list(write(model, tokenizer, "", 5)) == list(write(model, tokenizer, "\n", 5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": -1}, "max_new_tokens is -1"),
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_k": 0}, "top_k is 0"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_drawn(
    model: GPT, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        stream(model, [1], **{"n": 3} | options)


def test_an_empty_prompt_of_ids_is_refused(model: GPT) -> None:
    with pytest.raises(DataError, match=r"prompt of shape \(0,\)"):
        stream(model, [], 3)


def test_broken_weights_are_noticed() -> None:
    with pytest.raises(ChainruleError, match="not finite"):
        choose(np.array([0.0, np.nan]), generator("test"), Sampling(temperature=1.0))


@pytest.mark.parametrize(
    ("tokenizer", "start"),
    [
        (CharTokenizer("ab\n"), ["\n"]),
        (CharTokenizer("ab "), [" "]),
        (CharTokenizer("ab"), ["a"]),  # token 0
        (WordTokenizer.train("a b.\n"), ["\n"]),
        (WordTokenizer.train("a b."), ["<unk>"]),
        (WordPieceTokenizer.train("a b. ab", 20), ["."]),
        (WordPieceTokenizer.train("a b", 20), ["[UNK]"]),
        (UnigramTokenizer.train("a b ab", 300), ["▁", "<0x0A>"]),
        (BPETokenizer.train("a b", 256), ["\n"]),
        (TextbookBPETokenizer.train("a b ab", 20), [" "]),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_without_a_prompt_every_tokenizer_has_something_to_start_from(
    tokenizer: Tokenizer, start: list[str]
) -> None:
    assert [tokenizer.piece(id) for id in encoded(tokenizer, "").tolist()] == start
    size = GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=tokenizer.vocab_size)
    assert len(list(write(GPT(size), tokenizer, "", 5))) >= 5
