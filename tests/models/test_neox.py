"""NeoX: right gradients, attention and MLP side by side, and heads of which a part turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.errors import ConfigError
from chainrule.models import NeoX, NeoXConfig
from tests.models import tiny
from tests.models.tiny import ids_of

TINY = NeoXConfig(n_layer=2, n_head=3, n_embd=24, block_size=7, vocab_size=11, rotary=0.5)


def float64(config: NeoXConfig = TINY) -> NeoX:
    cr.seed(0)
    return tiny.float64(NeoX(config))


@pytest.mark.parametrize(
    "config",
    [
        TINY,
        replace(TINY, parallel=False, tied=True),
        replace(TINY, rotary=1.0, n_hidden=17, activation="gelu_tanh"),
        replace(TINY, rotary=0.0, n_layer=1),
    ],
)
def test_every_gradient_in_float64(config: NeoXConfig) -> None:
    model, ids = float64(config), ids_of(config)
    targets = np.roll(ids, -1, axis=1)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(ids, targets)) <= 1e-6


@pytest.mark.parametrize("parallel", [True, False])
def test_a_block_is_its_equations(parallel: bool) -> None:
    block = float64(replace(TINY, parallel=parallel)).layers[0]
    x, attn = np.random.default_rng(3).normal(size=(1, 5, 24)), block.attention

    def normed(norm: Any, x: Any) -> Any:
        return ops.layernorm(x, norm.weight.data, norm.bias.data)

    read = normed(block.input_layernorm, x)
    q, k, v = (read @ p.weight.data.T + p.bias.data for p in (attn.q_proj, attn.k_proj, attn.v_proj))
    q, k, v = (a.reshape(1, 5, 3, 8).transpose(0, 2, 1, 3) for a in (q, k, v))
    turned = [0, 1, 4, 5]  # pairs (0, 4) and (1, 5) of eight numbers
    for a in (q, k):
        a[..., turned] = ops.rotary(a[..., turned], positions=np.arange(5))
    mixed = ops.attention(q, k, v, causal=True).transpose(0, 2, 1, 3).reshape(1, 5, 24)
    attended = x + mixed @ attn.o_proj.weight.data.T + attn.o_proj.bias.data
    read = normed(block.post_attention_layernorm, x if parallel else attended)
    inside = ops.gelu(read @ block.mlp.fc1.weight.data.T + block.mlp.fc1.bias.data)
    want = attended + inside @ block.mlp.fc2.weight.data.T + block.mlp.fc2.bias.data
    np.testing.assert_allclose(block(x).numpy(), want, atol=1e-12)


def test_pairs_beyond_the_part_stand_still() -> None:
    np.testing.assert_allclose(TINY.frequencies, [1, 0.01, 0, 0])
    assert replace(TINY, rotary=0.0).frequencies is None
    for rotary, turned in ((0.01, 2), (0.25, 2), (0.4, 2), (0.5, 4), (0.99, 6), (1.0, 8)):
        assert replace(TINY, rotary=rotary).turned == turned
    assert (replace(TINY, rotary=1.0).frequencies > 0).all()


def test_the_number_of_parameters_follows_the_formula() -> None:
    for config in (TINY, replace(TINY, tied=True, n_layer=5), replace(TINY, n_hidden=17)):
        assert config.n_params == NeoX(config).count()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_embd": 25}, "n_embd is 25, n_head 3"),
        ({"n_embd": 9}, "n_embd is 9, n_head 3 .a head of 3 numbers must be even"),
        ({"rotary": 1.5}, "rotary is 1.5"),
        ({"activation": "tanh"}, r"activation is 'tanh' \(must be one of gelu, gelu_tanh, relu"),
        ({"n_hidden": 0}, "n_hidden is 0"),
        ({"rope_base": 0.0}, "rope_base is 0.0"),
    ],
)
def test_impossible_sizes_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(TINY, **change)
