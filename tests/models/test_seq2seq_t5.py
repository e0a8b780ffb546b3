"""T5: right gradients, nothing seen that must not be, positions by distance alone, token by token as at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.data import PairBatches
from chainrule.errors import ConfigError, ShapeError
from chainrule.generate import Translation, Translator, translate
from chainrule.models import T5, T5Config, describe, rebuild
from tests.models import tiny
from tests.models.test_seq2seq import INPUTS, MASK, SOURCE, TARGET, TARGETS

TINY = T5Config(
    n_layer=2,
    n_head=3,
    n_embd=12,
    n_hidden=20,
    block_size=9,
    vocab_size=11,
    dropout=0.0,
    relative_buckets=8,
    farthest=6,
)
VARIANTS = {
    "relu": TINY,
    "gated, untied": replace(TINY, gated=True, activation="gelu_tanh", tied=False, scale_output=False),
    "wide heads": replace(TINY, n_layer=1, head_size=7),
    "tied, not scaled": replace(TINY, n_layer=1, scale_output=False),
}
every_variant = pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)


def model_of(config: T5Config = TINY) -> T5:
    cr.seed(0)
    return T5(config)


def float64(config: T5Config = TINY) -> T5:
    return tiny.float64(model_of(config))  # type: ignore[type-var]


@every_variant
def test_every_gradient_in_float64(config: T5Config) -> None:
    model = float64(config)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(INPUTS, TARGETS), step=1e-5) <= 1e-6


def test_computed_again_they_have_the_same_bits() -> None:
    model, found = model_of(replace(TINY, dropout=0.2)), []
    for model.recompute in (False, True):
        with cr.random.step(3):
            found.append(gradients(model))
    assert found[0].any() and (found[0] == found[1]).all()


def gradients(model: T5) -> np.ndarray:
    model.parameters().zero_grad()
    model.loss(INPUTS, TARGETS).backward()
    return model.parameters().grad.copy()


def test_native_and_reference_agree() -> None:
    model = model_of()
    got = gradients(model)
    with cr.backend("reference"):
        want = gradients(model)
    assert np.abs(got - want).max() <= 2e-5 * max(1, np.abs(want).max())


def test_no_position_of_the_target_sees_a_later_one_and_none_sees_padding() -> None:
    model = float64().eval()
    before = model(*INPUTS).numpy()
    for t in range(1, TARGET.shape[1]):
        changed = TARGET.copy()
        changed[:, t] = (changed[:, t] + 1) % 11
        after = model(SOURCE, MASK, changed).numpy()
        assert (after[:, :t] == before[:, :t]).all() and (after[:, t:] != before[:, t:]).any()
    garbage = np.where(MASK, SOURCE, (SOURCE + 5) % 11)
    np.testing.assert_array_equal(model(garbage, MASK, TARGET).numpy(), before)
    for row, length in enumerate(MASK.sum(axis=1)):
        alone = model(SOURCE[row : row + 1, :length], None, TARGET[row : row + 1]).numpy()
        np.testing.assert_allclose(alone[0], before[row], rtol=0, atol=1e-10)


def test_the_encoder_knows_order_only_by_distances() -> None:
    model = float64().eval()
    found, turned = model.encode(SOURCE).numpy(), model.encode(SOURCE[:, ::-1]).numpy()[:, ::-1]
    assert np.abs(found - turned).max() > 1e-3
    model.encoder.relative_attention_bias.weight.data[:] = 0
    found, turned = model.encode(SOURCE).numpy(), model.encode(SOURCE[:, ::-1]).numpy()[:, ::-1]
    np.testing.assert_allclose(found, turned, atol=1e-12)


@every_variant
def test_token_by_token_as_at_once(config: T5Config) -> None:
    model = float64(config).eval()
    whole = model(SOURCE, MASK, TARGET).numpy()
    translation = Translation(model, SOURCE, MASK)
    assert Translator(model_of(config)).plan.compiled == native.available()
    for t in range(TARGET.shape[1]):
        np.testing.assert_allclose(translation.read(TARGET[:, t]), whole[:, t], atol=1e-10)
    translation = Translation(model, SOURCE, MASK)
    translation.read(TARGET[:, :2])
    translation.keep([0, 0, 2])
    found = translation.read(np.stack([TARGET[0, 2:4], TARGET[0, 2:4], TARGET[2, 2:4]]))
    np.testing.assert_allclose(found, whole[[0, 0, 2], 3], atol=1e-10)


def test_it_learns_to_write_backwards() -> None:
    cr.seed(0)
    config = T5Config(n_layer=1, n_head=2, n_embd=32, block_size=8, vocab_size=13, dropout=0.0)
    model = T5(config)
    words = np.random.default_rng(0).integers(3, 13, size=(500, 3))
    pairs = PairBatches(words, words[:, ::-1], start=1, end=2, batch_size=32, block_size=8)
    optimizer = cr.optim.AdamW(model.parameters())
    rate = cr.optim.cosine(5e-3, steps=500, warmup=20)  # 50 of 50 from other seeds too
    first = model.loss(*pairs.batch(0)).item()
    assert first == pytest.approx(np.log(13), abs=0.3)
    for step in range(500):
        optimizer.zero_grad()
        model.loss(*pairs.batch(step)).backward()
        optimizer.step(rate(step))
    written = translate(model.eval(), words[:50], start=1, end=2, beam=2)
    right = sum(
        found.tolist() == word[::-1].tolist() for found, word in zip(written, words[:50], strict=True)
    )
    assert right >= 45


@every_variant
def test_sizes_are_known_and_a_description_rebuilds_the_model(config: T5Config) -> None:
    model = model_of(config)
    assert config.n_params == model.count()
    twin = rebuild(describe(model))
    twin.load(model.state())
    assert (twin.eval()(*INPUTS).numpy() == model.eval()(*INPUTS).numpy()).all()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_head": 5}, "n_embd is 12, n_head 5"),
        ({"relative_buckets": 3}, "relative_buckets is 3"),
        ({"farthest": 4}, "farthest is 4, relative_buckets 8"),
        ({"activation": "tanh"}, "activation is 'tanh'"),
        ({"target_start": "cls"}, "target_start is 'cls'"),
        ({"block_size": 1 << 17}, "block_size is 131072"),
        ({"dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(TINY, **sizes)


def test_shapes_that_do_not_fit_are_named() -> None:
    model = model_of()
    with pytest.raises(
        ShapeError, match=r"T5: encoder ids \(1, 10\) \(must be \(B, T\) with T from 1 to block_size, 9"
    ):
        model.encode(np.zeros((1, 10), int))
    with pytest.raises(ShapeError, match="T5: decoder ids"):
        model.decode(np.zeros((1, 10), int), model.encode(SOURCE))
