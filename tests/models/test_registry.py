"""What every family of language models keeps: one battery over all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, DataError
from chainrule.models import (
    FAMILIES,
    IGNORE,
    GPTConfig,
    describe,
    family,
    make,
    model_class,
    n_params,
    rebuild,
)
from tests.models.tiny import SIZES, float64, tiny

IDS = np.random.default_rng(1).integers(11, size=(3, 8))
INPUTS, TARGETS = IDS[:, :-1], IDS[:, 1:]

every_family = pytest.mark.parametrize("name", FAMILIES)


def test_the_battery_knows_every_family() -> None:
    assert SIZES.keys() == FAMILIES.keys()


@every_family
def test_every_gradient_in_float64(name: str) -> None:
    model, targets = float64(tiny(name)), TARGETS.copy()
    targets[0, 3:] = IGNORE
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(INPUTS, targets)) <= 1e-6


@every_family
def test_no_position_sees_a_later_token(name: str) -> None:
    model = float64(tiny(name)).eval()
    before = model(INPUTS).numpy()
    for t in range(1, INPUTS.shape[1]):
        changed = INPUTS.copy()
        changed[:, t] = (changed[:, t] + 1) % 11
        after = model(changed).numpy()
        assert (after[:, :t] == before[:, :t]).all()
        assert (after[:, t] != before[:, t]).any()


@every_family
def test_a_prefix_alone_and_a_row_alone_give_the_same_logits(name: str) -> None:
    model = float64(tiny(name)).eval()
    together = model(INPUTS).numpy()
    for row in range(len(INPUTS)):
        for t in (1, 4, INPUTS.shape[1]):
            alone = model(INPUTS[row : row + 1, :t]).numpy()
            np.testing.assert_allclose(alone[0, -1], together[row, t - 1], rtol=0, atol=1e-10)


@every_family
def test_the_loss_is_that_of_the_logits_of_targets_that_count(name: str) -> None:
    model, targets = float64(tiny(name)).eval(), TARGETS.copy()
    targets[1] = IGNORE
    targets[2, ::2] = IGNORE
    scores = cr.ops.log_softmax(model(INPUTS)).numpy()
    counts = targets != IGNORE
    want = -np.mean([scores[b, t, targets[b, t]] for b, t in np.argwhere(counts)])
    assert model.loss(INPUTS, targets).item() == pytest.approx(want, rel=1e-12)


@every_family
def test_the_first_loss_is_that_of_a_guess(name: str) -> None:
    model = tiny(name, vocab_size=100)
    ids = np.random.default_rng(3).integers(100, size=(20, 8))
    with cr.no_grad():
        assert model.loss(ids[:, :-1], ids[:, 1:]).item() == pytest.approx(math.log(100), abs=0.05)


@every_family
def test_the_same_seed_is_the_same_model(name: str) -> None:
    one, same, other = tiny(name, 5).state(), tiny(name, 5).state(), tiny(name, 6).state()
    assert all((one[key] == same[key]).all() for key in one)
    if name != "ngram":  # which starts from zeros
        assert any((one[key] != other[key]).any() for key in one)


@every_family
def test_a_description_rebuilds_the_model(name: str) -> None:
    model = tiny(name)
    twin = rebuild(describe(model))
    twin.load(model.state())
    assert type(twin) is type(model) and twin.config == model.config
    assert (twin.eval()(INPUTS).numpy() == model.eval()(INPUTS).numpy()).all()


@every_family
def test_the_number_of_parameters_is_known_before_there_is_a_model(name: str) -> None:
    model = tiny(name)
    assert n_params(describe(model)) == type(model).n_params(model.config) == model.count()


def test_an_unknown_family_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"model 'gtp': no such family .*did you mean gpt\?"):
        family("gtp")


@every_family
def test_the_smallest_model_is_of_size_one(name: str) -> None:
    """One layer, one head, one number per token (two where they are turned in pairs), one token at a time."""
    sizes = {size: 2 if name in ("llama", "neox") and size == "n_embd" else 1 for size in SIZES[name]}
    model = make(name, **sizes, vocab_size=1)
    assert model.loss(np.zeros((2, 1), int), np.zeros((2, 1), int)).item() == pytest.approx(0, abs=1e-6)
    with pytest.raises(ConfigError, match="block_size is 0"):
        make(name, **{**sizes, "block_size": 0}, vocab_size=1)


@every_family
def test_a_batch_in_which_nothing_counts_costs_nothing(name: str) -> None:
    model = tiny(name).eval()
    loss = model.loss(INPUTS, np.full_like(TARGETS, IGNORE))
    loss.backward()
    assert loss.item() == 0 and not model.parameters().grad.any()


def test_batch_norm_has_no_statistics_of_nothing() -> None:
    with pytest.raises(DataError, match="statistics need at least one row"):
        tiny("mlp").loss(INPUTS, np.full_like(TARGETS, IGNORE))


def test_sizes_of_no_model() -> None:
    with pytest.raises(ConfigError, match=r"dict: no model has such sizes"):
        model_class({})


def test_a_billion_layers_are_counted_at_once() -> None:
    config = GPTConfig(n_layer=10**9, n_head=1, n_embd=2)
    two, three = (GPTConfig(n_layer=n, n_head=1, n_embd=2).n_params for n in (2, 3))
    assert config.n_params == two + (10**9 - 2) * (three - two)
