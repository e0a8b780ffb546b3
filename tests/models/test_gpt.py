"""GPT: right gradients, no look into the future, the promised sizes, names and first loss."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.autograd import Param
from chainrule.errors import ConfigError, DataError, GraphError, ShapeError
from chainrule.models import GPT, GPTConfig
from tests.models import tiny
from tests.models.tiny import ids_of

TINY = GPTConfig(n_layer=2, n_head=3, n_embd=12, block_size=7, vocab_size=11)


def model_of(config: GPTConfig = TINY, seed: int = 0) -> GPT:
    cr.seed(seed)
    return GPT(config)


def float64(config: GPTConfig = TINY) -> GPT:
    return tiny.float64(model_of(config))


UNTIED = replace(TINY, tied=False, norm_eps=1e-3)


@pytest.mark.parametrize(
    "config",
    [
        TINY,
        replace(TINY, bias=False, n_layer=1),
        replace(TINY, dropout=0.3),
        UNTIED,
        replace(TINY, n_hidden=5),
    ],
)
def test_every_gradient_in_float64(config: GPTConfig) -> None:
    model, ids = float64(config), ids_of(config)

    def loss() -> cr.Tensor:
        with cr.random.step(3):  # the same dropout masks each time
            return model.loss(ids, np.roll(ids, -1, axis=1))

    assert cr.gradcheck_model(model.parameters(), loss) <= 1e-6


def test_a_head_of_its_own() -> None:
    model, ids = model_of(UNTIED), ids_of(UNTIED)
    assert UNTIED.n_params == model.count() == TINY.n_params + 11 * 12
    before = model(ids).numpy()
    model.lm_head.weight.data[3] += 1
    changed = model(ids).numpy() != before
    assert changed[..., 3].all() and not np.delete(changed, 3, axis=-1).any()


@pytest.mark.requirement("R-331")
def test_no_position_sees_a_later_token() -> None:
    model, ids = model_of().eval(), ids_of(TINY)
    assert not any("cross" in name for name in model.state())
    before = model(ids).numpy()
    for t in range(1, TINY.block_size):
        changed = ids.copy()
        changed[:, t] = (changed[:, t] + 1) % TINY.vocab_size
        after = model(changed).numpy()
        assert (after[:, :t] == before[:, :t]).all()
        assert (after[:, t] != before[:, t]).any()


@pytest.mark.requirement("R-333", "R-461")
def test_a_prefix_alone_and_a_row_alone_give_the_same_logits() -> None:
    model, ids = float64().eval(), ids_of(TINY)
    together = model(ids).numpy()
    for row in range(len(ids)):
        for t in range(1, TINY.block_size + 1):
            alone = model(ids[row : row + 1, :t]).numpy()
            np.testing.assert_allclose(alone[0, -1], together[row, t - 1], rtol=0, atol=1e-10)


@pytest.mark.requirement("R-140")
def test_the_first_loss_is_that_of_a_guess_thanks_to_small_weights() -> None:
    config = GPTConfig(n_layer=4, n_head=4, n_embd=64, block_size=32, vocab_size=100)
    model, ids = model_of(config), ids_of(config, B=8)
    targets = np.random.default_rng(3).integers(config.vocab_size, size=ids.shape)
    with cr.no_grad():
        assert abs(model.loss(ids, targets).item() - math.log(config.vocab_size)) < 0.05
        model.wte.weight.data = np.random.default_rng(4).normal(size=model.wte.weight.shape)
        assert model.loss(ids, targets).item() > 2 * math.log(config.vocab_size)


@pytest.mark.requirement("R-153")
def test_a_new_block_is_near_the_identity() -> None:
    config = GPTConfig(n_layer=4, n_head=4, n_embd=64)
    x = np.random.default_rng(5).normal(size=(2, 16, 64)).astype(np.float32)
    y = model_of(config).h[0](x).numpy()
    assert 0 < np.linalg.norm(y - x) / np.linalg.norm(x) < 0.5


def test_residual_projections_start_smaller_by_the_depth() -> None:
    config = GPTConfig(n_layer=8, n_head=4, n_embd=128)
    state = model_of(config).state()
    assert state["h.3.attn.c_attn.weight"].std() == pytest.approx(0.02, rel=0.02)
    assert state["wte.weight"].std() == pytest.approx(0.02, rel=0.02)
    for name in ("h.0.attn.c_proj.weight", "h.7.mlp.c_proj.weight"):
        assert state[name].std() == pytest.approx(0.02 / math.sqrt(2 * 8), rel=0.02)
    assert not state["h.0.mlp.c_fc.bias"].any() and (state["ln_f.weight"] == 1).all()


def test_names_and_shapes_are_those_of_gpt2_stored_out_in() -> None:
    shapes = {name: value.shape for name, value in model_of().state().items()}
    C, V, T = TINY.n_embd, TINY.vocab_size, TINY.block_size
    block = {
        "ln_1.weight": (C,),
        "ln_1.bias": (C,),
        "attn.c_attn.weight": (3 * C, C),
        "attn.c_attn.bias": (3 * C,),
        "attn.c_proj.weight": (C, C),
        "attn.c_proj.bias": (C,),
        "ln_2.weight": (C,),
        "ln_2.bias": (C,),
        "mlp.c_fc.weight": (4 * C, C),
        "mlp.c_fc.bias": (4 * C,),
        "mlp.c_proj.weight": (C, 4 * C),
        "mlp.c_proj.bias": (C,),
    }
    expected = {"wte.weight": (V, C), "wpe.weight": (T, C), "ln_f.weight": (C,), "ln_f.bias": (C,)}
    assert shapes == expected | {f"h.{i}.{name}": s for i in range(2) for name, s in block.items()}


@pytest.mark.requirement("R-342")
def test_the_number_of_parameters_follows_the_formula_and_grows_evenly_with_depth() -> None:
    counts = {}
    for n_layer in (1, 2, 12):
        for bias, hidden in ((True, None), (False, None), (True, 5)):
            config = replace(TINY, n_layer=n_layer, bias=bias, n_hidden=hidden)
            model = model_of(config)
            assert model(ids_of(config)).shape == (2, 7, 11)
            counts[n_layer, bias, hidden] = model.count()
            assert config.n_params == model.count()
    for kind in ((True, None), (True, 5)):
        one, two, twelve = (counts[n, *kind] for n in (1, 2, 12))
        assert twelve - two == 10 * (two - one)
    # GPT-2, 124 million as its authors count it
    assert GPTConfig(12, 12, 768, 1024, 50257).n_params == 124_439_808


@pytest.mark.requirement("R-336")
def test_the_shared_matrix_gets_the_gradient_of_both_its_uses() -> None:
    model, ids = float64(), ids_of(TINY)
    targets = np.roll(ids, -1, axis=1)
    model.parameters().zero_grad()
    model.loss(ids, targets).backward()
    shared = model.wte.weight.grad
    lookup, head = (Param(model.wte.weight.data, dtype=np.float64) for _ in range(2))
    hidden = ops.embedding(lookup, ids=ids) + model.wpe(np.arange(ids.shape[1]))
    for block in model.h:
        hidden = block(hidden)
    ops.cross_entropy(ops.linear(model.ln_f(hidden), head), targets=targets).backward()
    assert shared is not None and lookup.grad is not None and head.grad is not None
    assert np.abs(lookup.grad).max() > 0 and np.abs(head.grad).max() > 0
    np.testing.assert_allclose(shared, lookup.grad + head.grad, rtol=1e-12)
    assert model.count() + lookup.size == TINY.n_params + TINY.vocab_size * TINY.n_embd


@pytest.mark.requirement("R-150")
def test_token_and_position_tables_both_learn() -> None:
    model, ids = model_of(), ids_of(TINY)
    model.loss(ids, np.roll(ids, -1, axis=1)).backward()
    for table in (model.wte.weight, model.wpe.weight):
        assert table.grad is not None and (np.abs(table.grad).max(axis=1) > 0).all()


@pytest.mark.requirement("R-335", "R-479")
def test_dropout_falls_in_training_only_and_evaluation_keeps_nothing() -> None:
    model, ids = model_of(replace(TINY, dropout=0.5)), ids_of(TINY)
    assert (model(ids).numpy() != model(ids).numpy()).any()
    model.eval()
    state = model.state()
    with cr.no_grad():
        first, second = model(ids), model(ids)
    assert (first.numpy() == second.numpy()).all()
    with pytest.raises(GraphError, match="no_grad"):
        first.sum().backward()
    assert all((model.state()[name] == value).all() for name, value in state.items())


@pytest.mark.requirement("R-459")
def test_shapes_from_ids_to_logits() -> None:
    model, ids = model_of(), ids_of(TINY, B=3, T=5)
    with cr.capture() as seen:
        logits = model(ids)
    assert ids.shape == (3, 5) and seen["h.0.ln_1.layernorm"].value.shape == (3, 5, 12)
    assert logits.shape == (3, 5, 11) and logits.dtype == np.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_embd": 13}, "n_embd is 13, n_head 3"),
        ({"n_layer": 0}, "n_layer is 0"),
        ({"n_hidden": 0}, "n_hidden is 0"),
        ({"vocab_size": -1}, "vocab_size is -1"),
        ({"dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_impossible_sizes_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(TINY, **change)


@pytest.mark.requirement("R-273")
def test_inputs_that_do_not_fit_are_refused() -> None:
    model = model_of()
    with pytest.raises(ShapeError, match=r"ids \(1, 8\).*T from 1 to 7"):
        model(np.zeros((1, 8), int))
    with pytest.raises(ShapeError, match=r"ids \(3,\)"):
        model(np.zeros(3, int))
    with pytest.raises(DataError, match="11"):
        model(np.array([[11]]))
