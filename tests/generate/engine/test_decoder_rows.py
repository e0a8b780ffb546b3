"""Logits of every row, and going back: the bits of reading token by token, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.errors import ConfigError, ShapeError
from chainrule.generate import Decoder, Translation
from chainrule.models import LanguageModel, Seq2Seq, Seq2SeqConfig
from chainrule.trace.interpreter import Interpreter
from tests.generate.engine.helpers import noisy
from tests.generate.engine.test_decoder import assert_same, engine, with_both  # noqa: F401

SIZES = {
    "gpt": {"n_layer": 2, "n_head": 4, "n_embd": 48, "block_size": 70},
    "llama": {"n_layer": 2, "n_head": 6, "n_kv_head": 2, "n_embd": 72, "n_hidden": 77, "block_size": 70},
    "neox": {"n_layer": 2, "n_head": 3, "n_embd": 48, "rotary": 1.0, "block_size": 70},
    "lstm": {"n_layer": 2, "n_embd": 33, "n_hidden": 40, "block_size": 7},
}
IDS = np.random.default_rng(2).integers(65, size=50)


def model_of(family: str) -> LanguageModel:
    return noisy(family, **SIZES[family])


def by_token(decoder: Decoder, ids: np.ndarray, sequence: int = 0) -> np.ndarray:
    return np.concatenate([decoder.step([token], sequences=[sequence]) for token in ids])


@pytest.mark.usefixtures("threads", "engine")
@pytest.mark.parametrize("weights", ["int8", "q8_0", "q4_0"])
@pytest.mark.parametrize("family", SIZES)
def test_every_row_has_the_bits_of_reading_token_by_token(family: str, weights: str) -> None:
    model = model_of(family)
    decoder = Decoder(model, weights, batch=2)
    assert isinstance(decoder._engine, Interpreter) != native.available()
    want = by_token(decoder, IDS)
    decoder.reset()
    assert_same(
        np.concatenate([decoder.prefill(part, [0], every=True) for part in np.split(IDS, [33])]), want
    )
    decoder.reset()
    both = decoder.prefill([IDS[:7], IDS], every=[True, False])
    assert_same(both, np.concatenate([want[:7], want[-1:]]))
    assert_same(decoder.prefill(IDS[7:9], [0], every=True), want[7:9])


@pytest.mark.usefixtures("threads", "engine")
@pytest.mark.parametrize("family", [name for name in SIZES if name != "lstm"])
def test_what_follows_a_truncated_text_is_as_if_the_rest_had_never_been_read(family: str) -> None:
    decoder = Decoder(model_of(family), batch=2)
    want = by_token(decoder, IDS)
    decoder.prefill(IDS[::-1], [1])
    for length in (40, 33, 32, 31, 1, 0):
        decoder.truncate(0, length)
        assert decoder.lengths.tolist() == [length, 50]
        assert_same(decoder.prefill(IDS[length:], [0], every=True), want[length:])
    decoder.truncate(1, 0)
    decoder.prefill(IDS[:20], [1])
    decoder.truncate(1, 12)
    decoder.copy(1, 0)
    assert_same(decoder.prefill(IDS[12:], [0], every=True), want[12:])


@pytest.mark.usefixtures("engine")
def test_what_stands_before_a_text_has_no_row_and_stays() -> None:
    model = model_of("llama")
    with_both(model)
    decoder = Decoder(model)
    want = by_token(decoder, IDS)
    decoder.reset()
    assert_same(decoder.prefill(IDS, every=True), want)
    for length in (31, 0):
        decoder.truncate(0, length)
        assert_same(decoder.prefill(IDS[length:], every=True), want[length:])


@pytest.mark.usefixtures("threads")
def test_every_row_of_a_translation_and_back() -> None:
    cr.seed(0)
    model = Seq2Seq(Seq2SeqConfig(n_layer=2, n_head=3, n_embd=48, block_size=40, vocab_size=65)).eval()
    source, target = np.split(np.random.default_rng(3).integers(65, size=(6, 40)), 2)
    translation = Translation(model, source)
    want = np.stack([translation.read(target[:, t]) for t in range(40)], axis=1)
    translation.truncate(33)
    assert_same(translation.read(target[:, 33:], every=True), want[:, 33:])
    translation.truncate(0)
    assert_same(translation.read(target, every=True), want)
    with pytest.raises(ShapeError, match=r"truncate to 41 \(must be from 0 to 40"):
        translation.truncate(41)


def test_impossible_lengths_are_refused(engine: str) -> None:  # noqa: F811
    decoder = Decoder(model_of("gpt"))
    decoder.prefill(IDS)
    for length in (51, -1, 1.5):
        with pytest.raises(ShapeError, match=rf"to {length} \(must be from 0 to 50"):
            decoder.truncate(0, length)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="must be from 0 to 0"):
        decoder.truncate(1, 0)
    with pytest.raises(ShapeError, match="every has 2 entries"):
        decoder.prefill([1], every=[True, False])


def test_a_recurrent_state_does_not_go_back(engine: str) -> None:  # noqa: F811
    decoder = Decoder(model_of("lstm"))
    first = decoder.prefill(IDS)
    with pytest.raises(ConfigError, match=r"to 3 \(must be 0 or 50: a recurrent state"):
        decoder.truncate(0, 3)
    decoder.truncate(0, 50)
    decoder.truncate(0, 0)
    assert_same(decoder.prefill(IDS), first)
