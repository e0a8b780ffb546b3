"""Sampling: seeded, greedy at temperature 0, true to the probabilities, cropped to the context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleError, ConfigError, DataError
from chainrule.generate import choose, generate, stream, write
from chainrule.generate.sample import last_logits
from chainrule.models import GPT, GPTConfig
from chainrule.random import generator
from chainrule.text import CharTokenizer


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
    logits = last_logits(model, np.array([1, 2, 3]))
    assert choose(logits, generator("test"), temperature=0, top_k=None) == logits.argmax()
    assert len({tuple(generate(model, [1], 20, temperature=0, seed=seed)) for seed in range(3)}) == 1

    n, temperature = 5_000, 1.5
    drawn = [choose(logits, generator("test", i), temperature=temperature, top_k=None) for i in range(n)]
    p = np.exp(logits.astype(np.float64) / temperature)
    p /= p.sum()
    error = np.sqrt(p * (1 - p) / n)
    assert (np.abs(np.bincount(drawn, minlength=10) / n - p) < 3 * error + 1e-12).all()


def test_top_k_leaves_the_k_likeliest() -> None:
    logits = np.array([0.0, 2.0, 1.0, 2.0])
    drawn = {choose(logits, generator("test", i), temperature=1.0, top_k=2) for i in range(50)}
    assert drawn == {1, 3}
    assert {choose(logits, generator("test", i), temperature=9.0, top_k=99) for i in range(200)} == {
        0,
        1,
        2,
        3,
    }
    assert choose(logits, generator("test"), temperature=1.0, top_k=1) == 1  # of equal ones the first


@pytest.mark.requirement("R-478", "R-273")
def test_one_token_is_enough_and_the_window_slides(model: GPT) -> None:
    assert generate(model, [7], 3 * model.config.block_size).shape == (24,)
    prompt = np.arange(20) % 10
    assert (generate(model, prompt, 5, seed=2) == generate(model, prompt[-8:], 5, seed=2)).all()


def test_sampling_is_without_dropout_and_leaves_the_mode_alone(model: GPT) -> None:
    model.train()
    window = np.array([1, 2])
    assert (last_logits(model, window) == last_logits(model, window)).all()
    assert model.training and model.h[0].attn.training


@pytest.mark.requirement("R-337")
def test_from_a_string_to_a_distribution_and_on_to_text(model: GPT) -> None:
    tokenizer = CharTokenizer("abcdefghi\n")
    p = cr.ops.softmax(last_logits(model, tokenizer.encode("bad")))
    assert p.shape == (10,) and p.sum() == pytest.approx(1, abs=1e-6)
    pieces = list(write(model, tokenizer, "bad", 12, seed=1))
    assert len(pieces) == 12 and set("".join(pieces)) <= set(tokenizer.characters)
    assert list(write(model, tokenizer, "", 5)) == list(write(model, tokenizer, "\n", 5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0"),
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
        choose(np.array([0.0, np.nan]), generator("test"), temperature=1.0, top_k=None)
