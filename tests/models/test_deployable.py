"""Forms for use: what training needs is melted into the weights, and the outputs stay."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.models import MLPLM, MLPConfig
from tests.models.tiny import float64, tiny

IDS = np.random.default_rng(1).integers(11, size=(3, 7))


def calls(model: nn.Layer) -> int:
    """How many ops a forward pass takes."""
    with cr.capture() as seen:
        model(IDS)
    return len(seen)


@pytest.mark.requirement("R-482")
def test_batch_norm_folded_into_the_layers_before_it() -> None:
    cr.seed(0)
    model = MLPLM(MLPConfig(block_size=3, n_embd=6, n_hidden=20, n_layer=2, vocab_size=11)).to(np.float64)
    for _ in range(3):
        model.loss(IDS[:, :-1], IDS[:, 1:])  # so that the running statistics are not those of the start
    plain = model.eval().folded()
    np.testing.assert_allclose(plain(IDS).numpy(), model(IDS).numpy(), rtol=0, atol=1e-10)
    assert plain.count() < model.count() and calls(plain) < calls(model)
    assert not any(isinstance(layer, nn.BatchNorm) for _, layer in plain.named_layers())


@pytest.mark.requirement("R-482")
def test_low_rank_changes_merged_into_the_matrices() -> None:
    model = float64(tiny("llama")).eval()
    for block in model.layers:  # type: ignore[attr-defined]
        for name in ("q_proj", "v_proj"):
            changed = nn.LoRALinear(getattr(block.self_attn, name), rank=2, alpha=4.0).to(np.float64)
            changed.lora_B.data += np.random.default_rng(5).normal(size=changed.lora_B.shape)
            setattr(block.self_attn, name, changed)
    before, ops_before = model(IDS).numpy(), calls(model)
    adapted = [layer for _, layer in model.named_layers() if isinstance(layer, nn.LoRALinear)]
    for layer in adapted:
        layer.merge()
    np.testing.assert_allclose(model(IDS).numpy(), before, rtol=0, atol=1e-10)
    assert calls(model) == ops_before - 4 * len(adapted)  # two products, a factor and a sum each
    for block in model.layers:  # type: ignore[attr-defined]
        for name in ("q_proj", "v_proj"):
            setattr(block.self_attn, name, getattr(block.self_attn, name).base)
    assert model.count() == type(model).n_params(model.config)
    np.testing.assert_allclose(model(IDS).numpy(), before, rtol=0, atol=1e-10)
