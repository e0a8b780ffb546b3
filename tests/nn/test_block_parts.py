"""The roles of the projections; residuals in the blocks of every model; biases. test_blocks.py has the layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule import nn, ops
from chainrule.autograd.types import Array
from chainrule.models.gpt import Block as GPTBlock
from chainrule.models.gpt import GPTConfig
from chainrule.models.llama import Block as LlamaBlock
from chainrule.models.llama import LlamaConfig
from tests.vectors import vector

RNG = np.random.default_rng(0)


# -- projections ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-284")
def test_three_projections_with_separate_roles() -> None:
    """C = 4 to d = 2: what a token asks for, what it answers to and what it gives are three learned matrices."""
    cr.seed(0)
    layer = nn.MultiHeadAttention(4, 2, out_proj=False).to(np.float64)  # each of two heads sees all 4 as 2
    x = cr.Tensor(RNG.normal(size=(1, 3, 4)))
    matrices = [layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight]
    with cr.capture("attention") as seen:
        out = layer(x)
        (out * RNG.normal(size=out.shape)).sum().backward()
    q, k, v = seen["attention"].saved[:3]
    for found, W in zip((q, k, v), matrices, strict=True):
        assert found.shape == (1, 2, 3, 2)
        for head in range(2):
            np.testing.assert_allclose(found[0, head], x.numpy()[0] @ W.data[2 * head : 2 * head + 2].T)
    grads = [W.grad for W in matrices]
    assert len({id(W) for W in matrices}) == 3 and all(g is not None and abs(g).max() > 1e-6 for g in grads)
    assert all(abs(a - b).max() > 1e-6 for a, b in ((grads[0], grads[1]), (grads[1], grads[2])))
    grouped = nn.MultiHeadAttention(4, 2, kv_heads=1)
    assert grouped.k_proj.weight.shape == grouped.v_proj.weight.shape == (2, 4)


# -- residuals --------------------------------------------------------------------------------------------------


class Constant(nn.Layer):
    """Always the same answer."""

    def __init__(self, value: Array) -> None:
        self.value = value

    def forward(self, *args: Any, **options: Any) -> cr.Tensor:
        return cr.Tensor(self.value)


def blocks(C: int) -> dict[str, Any]:
    """A block of every model that has one, and the names of its two sublayers."""
    gpt = GPTBlock(GPTConfig(n_layer=1, n_head=2, n_embd=C, block_size=8, vocab_size=5))
    llama = LlamaBlock(
        LlamaConfig(n_layer=1, n_head=2, n_kv_head=1, n_embd=C, n_hidden=6, block_size=8, vocab_size=5)
    )
    return {"gpt": gpt, "llama": llama}


ATTENTION = {"gpt": "attn", "llama": "self_attn"}


@pytest.mark.requirement("R-323")
@pytest.mark.parametrize("name", ATTENTION)
def test_a_sublayer_is_added_to_its_input(name: str) -> None:
    v = vector("004-9.9.3-residual")
    X, O = (np.array(v.inputs[key]) for key in ("X", "O"))
    block = blocks(4)[name].to(np.float64)
    for sublayers in ((O, 0 * O), (0 * O, O)):
        for place, value in zip((ATTENTION[name], "mlp"), sublayers, strict=True):
            setattr(block, place, Constant(value[None]))
        v.check(block(cr.Tensor(X[None])).numpy()[0])


@pytest.mark.requirement("R-324")
@pytest.mark.parametrize("name", ATTENTION)
def test_the_gradient_survives_a_sublayer_that_does_nothing(name: str) -> None:
    """dy/dx = I + df/dx: with f = 0 the Jacobian of the block is I, to the bit."""
    T, C = 3, 4
    block = blocks(C)[name].to(np.float64)
    for path, param in block.named_parameters():
        if path.rsplit(".", 2)[-2] in ("o_proj", "c_proj", "down_proj"):
            param.data *= 0
    for position in range(T * C):
        x = cr.Tensor(RNG.normal(size=(1, T, C)), requires_grad=True)
        y = block(x)
        row = np.zeros(T * C)
        row[position] = 1
        y.backward(row.reshape(1, T, C))
        assert (y.numpy() == x.numpy()).all()
        np.testing.assert_array_equal(x.grad.reshape(-1), row)


# -- biases -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-343")
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
def test_a_bias_is_repeated_for_every_position(B: int, T: int, n_in: int, n_out: int) -> None:
    cr.seed(0)
    layer = nn.Linear(n_in, n_out).to(np.float64)
    layer.bias.data += np.arange(1.0, n_out + 1)
    x, dy = RNG.normal(size=(B, T, n_in)), RNG.normal(size=(B, T, n_out))
    y = layer(cr.Tensor(x))
    b = np.ones((B, T, 1)) * layer.bias.data  # 1_n bᵀ
    np.testing.assert_allclose(y.numpy(), x @ layer.weight.data.T + b, rtol=1e-12, atol=1e-14)
    y.backward(dy)
    np.testing.assert_allclose(layer.bias.grad, dy.sum(axis=(0, 1)), rtol=1e-12, atol=1e-14)
    assert cr.gradcheck(ops.linear, x, layer.weight.data, layer.bias.data) < 1e-6


@pytest.mark.parametrize("dtype", [bool, np.float32])
def test_one_column_of_a_mask_stands_for_all_keys(dtype: type) -> None:
    """With a prefix too, whose keys are seen in any case."""
    cr.seed(1)
    layer = nn.MultiHeadAttention(8, 2).eval()
    layer.prefix = nn.KeyValuePrefix(3, 2, 4)
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
    column = np.array([[1], [0], [1], [1], [0]], dtype)[None, None]  # (1, 1, T, 1)
    whole = np.repeat(column, 5, axis=-1)
    np.testing.assert_array_equal(layer(x, mask=column).numpy(), layer(x, mask=whole).numpy())
