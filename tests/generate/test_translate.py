"""Translations token by token: the same numbers as the whole target at once, whatever happens to their rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.types import Array
from chainrule.errors import ChainruleError
from chainrule.generate import Request, Sampling, Translation, run, translate
from chainrule.models import GPT, GPTConfig, Seq2Seq, Seq2SeqConfig

SIZE = Seq2SeqConfig(n_layer=2, n_head=3, n_embd=12, n_hidden=20, block_size=9, vocab_size=11)
VARIANTS = {
    "post": SIZE,
    "pre, learned": replace(SIZE, norm="pre", positions="learned", bias=True),
    "tied, scaled": replace(SIZE, tied=True, scale_embedding=True, activation="gelu"),
    "two vocabularies": replace(SIZE, source_vocab_size=13),
}
RNG = np.random.default_rng(2)
SOURCE, TARGET = RNG.integers(11, size=(3, 6)), RNG.integers(11, size=(3, 9))
MASK = np.arange(6) < np.array([6, 4, 1])[:, None]


def model_of(config: Seq2SeqConfig = SIZE) -> Seq2Seq:
    """A model whose parts all matter; in training mode, which must not make a difference."""
    cr.seed(0)
    model = Seq2Seq(config)
    for _, param in model.named_parameters():
        param.data += 0.3 * RNG.normal(size=param.shape)
    return model


def at_once(model: Seq2Seq, rows: Array | slice = slice(None), target: Array = TARGET) -> Array:
    """logits (B, T, V) of the teacher-forced pass"""
    model.eval()
    with cr.no_grad():
        logits: Array = model(SOURCE[rows], MASK[rows], target).numpy()
    model.train()
    return logits


@pytest.mark.requirement("R-480", "R-481", "R-333")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_token_by_token_is_the_parallel_pass(config: Seq2SeqConfig, dtype: str) -> None:
    model = model_of(config).to(dtype)
    whole, translation = at_once(model), Translation(model, SOURCE, MASK)
    for t in range(TARGET.shape[1]):
        logits = translation.read(TARGET[:, t])
        assert logits.dtype == dtype and translation.length == t + 1
        np.testing.assert_allclose(logits, whole[:, t], rtol=0, atol=1e-10 if dtype == "float64" else 1e-5)


def test_several_tokens_at_a_time() -> None:
    model = model_of().to("float64")
    whole, translation = at_once(model), Translation(model, SOURCE, MASK)
    for start, stop in ((0, 4), (4, 5), (5, 9)):
        logits = translation.read(TARGET[:, start:stop])
        np.testing.assert_allclose(logits, whole[:, stop - 1], rtol=0, atol=1e-10)


def test_the_source_is_encoded_once_and_its_keys_are_computed_once() -> None:
    model = model_of()
    with cr.capture("*") as seen:
        translation = Translation(model, SOURCE[:1], MASK[:1])
        for t in range(3):
            translation.read(TARGET[:1, t])
    names = [name.partition("#")[0] for name in seen]
    assert names.count("model.encoder.layers.0.self_attn.q_proj.linear") == 1
    assert names.count("model.decoder.layers.1.encoder_attn.k_proj.linear") == 1
    assert names.count("model.decoder.layers.1.encoder_attn.q_proj.linear") == 3


@pytest.mark.parametrize("rows", [[1, 0, 2], [0, 0, 2, 2, 1], [2], [1, 1, 1]])
def test_rows_can_change_places_fork_and_end(rows: list[int]) -> None:
    model = model_of().to("float64")
    translation = Translation(model, SOURCE, MASK)
    translation.read(TARGET[:, :4])
    translation.keep(rows)
    rest = RNG.integers(11, size=(len(rows), 3))
    whole = at_once(model, np.array(rows), np.concatenate([TARGET[rows, :4], rest], axis=1))
    for t in range(3):
        np.testing.assert_allclose(translation.read(rest[:, t]), whole[:, 4 + t], rtol=0, atol=1e-10)
    assert translation.owners.tolist() == rows


def test_beams_of_one_source_swap_their_pasts() -> None:
    model = model_of().to("float64")
    translation = Translation(model, SOURCE[:1], MASK[:1])
    translation.keep([0, 0])
    translation.read([3, 4])
    translation.keep([1, 0])
    got = translation.read([5, 6])
    whole = at_once(model, np.array([0, 0]), np.array([[4, 5], [3, 6]]))
    np.testing.assert_allclose(got, whole[:, -1], rtol=0, atol=1e-10)


def test_alone_is_as_in_a_batch() -> None:
    model = model_of()
    together = Translation(model, SOURCE, MASK)
    alone = [Translation(model, SOURCE[i : i + 1, : MASK[i].sum()]) for i in range(3)]
    for t in range(4):
        logits = together.read(TARGET[:, t])
        each = [one.read(TARGET[i : i + 1, t])[0] for i, one in enumerate(alone)]
        np.testing.assert_allclose(logits, each, rtol=0, atol=1e-5)


class TestTranslate:
    def test_takes_the_likeliest_token_until_the_end(self) -> None:
        model = model_of()
        for row, ids in enumerate(translate(model, SOURCE, MASK, start=1, end=2)):
            written = [1, *ids.tolist()]
            for t in range(1, len(written)):
                want = at_once(model, np.array([row]), np.array([written[:t]]))[0, -1].argmax()
                assert want == written[t] != 2
            if len(written) <= SIZE.block_size:
                assert at_once(model, np.array([row]), np.array([written]))[0, -1].argmax() == 2

    def test_stops_at_the_limit(self) -> None:
        model = model_of()
        model.final_logits_bias.data[0, 7] = 1e3
        written = translate(model, SOURCE, MASK, start=1, end=2)
        assert [ids.tolist() for ids in written] == [[7] * SIZE.block_size] * 3
        assert [len(ids) for ids in translate(model, SOURCE, start=1, end=2, max_new_tokens=2)] == [2, 2, 2]

    def test_a_translation_may_be_empty(self) -> None:
        model = model_of()
        model.final_logits_bias.data[0, 2] = 1e3
        assert [ids.tolist() for ids in translate(model, SOURCE, MASK, start=1, end=2)] == [[], [], []]

    def test_a_wide_beam_finds_the_best_of_all(self) -> None:
        model, end = model_of(), 2
        others = [token for token in range(11) if token != end]
        found = translate(model, SOURCE, MASK, start=1, end=end, max_new_tokens=2, beam=121)
        for row, ids in enumerate(found):
            targets = np.array([[1, token] for token in others])
            first, second = cr.ops.log_softmax(at_once(model, np.full(10, row), targets)).swapaxes(
                0, 1
            )  # (10, V)
            value: dict[tuple[int, ...], float] = {(): first[0, end]}
            for i, one in enumerate(others):
                for two in range(11):
                    text = (one,) if two == end else (one, two)
                    value[text] = (first[i, one] + second[i, two]) / (7 / 6) ** 0.6
            assert tuple(ids.tolist()) == max(value, key=lambda text: value[text])

    def test_a_beam_finds_the_same_alone_and_beside_others(self) -> None:
        model = model_of()
        together = translate(model, SOURCE, MASK, start=1, end=2, beam=3)
        for i, ids in enumerate(together):
            (alone,) = translate(model, SOURCE[i : i + 1, : MASK[i].sum()], start=1, end=2, beam=3)
            assert ids.tolist() == alone.tolist()


def test_translations_can_be_drawn_as_texts_are() -> None:
    model = model_of()
    samplings = [
        Sampling(max_new_tokens=8, temperature=1.0, seed=seed, stop_tokens=(2,)) for seed in (3, 4, 3)
    ]
    together = [Request([1], sampling, 11) for sampling in samplings]
    list(run(Translation(model, SOURCE, MASK), together))
    for i, request in enumerate(together):
        alone = Request([1], samplings[i], 11)
        list(run(Translation(model, SOURCE[i : i + 1, : MASK[i].sum()]), [alone]))
        assert request.tokens == alone.tokens and request.finish == alone.finish


def bad_read(tokens: Any, before: int = 0) -> None:
    translation = Translation(model_of(), SOURCE, MASK)
    if before:
        translation.read(np.ones((3, before), int))
    translation.read(tokens)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Translation(GPT(GPTConfig()), SOURCE), "Translation: got GPT"),
        (lambda: bad_read([1, 2]), r"tokens \(2,\) int64 for 3 rows"),
        (lambda: bad_read([0.5] * 3), "float64 for 3 rows"),
        (lambda: bad_read([1, 2, 3], before=9), "from position 9 .*block_size, 9"),
        (lambda: bad_read(np.ones((3, 0), int)), "Translation: 0 tokens from position 0"),
        (lambda: bad_read([0, 11, 99]), r"token 11 \(must be from 0 to 10\)"),
        (lambda: bad_read([0, 1, -1]), "token -1 "),
        (lambda: Translation(model_of(), SOURCE).keep([3]), r"rows \[3\] \(must be from 0 to 2"),
        (lambda: Translation(model_of(), SOURCE).keep([0.5]), "must be one row of integers"),
        (lambda: translate(model_of(), SOURCE, start=1, end=2, max_new_tokens=0), "max_new_tokens is 0"),
        (lambda: translate(model_of(), SOURCE, start=1, end=2, max_new_tokens=10), "max_new_tokens is 10"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ChainruleError, match=message):
        call()
