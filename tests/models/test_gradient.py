"""The gradient of a batch: however it is cut, and whether the output layer computes its gradients in forward or not."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Tensor
from chainrule.data import Pair
from chainrule.errors import GraphError
from chainrule.models import (
    GPT,
    IGNORE,
    LSTMLM,
    GPTConfig,
    Llama,
    LlamaConfig,
    Model,
    RecurrentConfig,
    Seq2Seq,
)
from chainrule.models import Seq2SeqConfig as PairConfig
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch

module = importlib.import_module("chainrule.ops.linear_cross_entropy")

MODELS: dict[str, Any] = {
    "gpt": lambda: GPT(GPTConfig(2, 2, 16, block_size=8, vocab_size=33, dropout=0.1)),
    "llama": lambda: Llama(
        LlamaConfig(n_layer=1, n_head=2, n_kv_head=1, n_embd=16, block_size=8, vocab_size=33)
    ),
    "lstm": lambda: LSTMLM(RecurrentConfig(n_layer=1, n_embd=16, n_hidden=16, vocab_size=33)),
    "seq2seq": lambda: Seq2Seq(PairConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=33)),
}


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vocabulary is a large one: logits are not kept."""
    monkeypatch.setattr(module, "KEEP", 0)
    monkeypatch.setattr(module, "CHUNK", 7 * 33)


def work_for(name: str) -> Batch:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 33, (5, 9))
    targets = ids[:, 1:].copy()
    targets[0, 2:] = targets[3, 5:] = IGNORE  # uneven microbatches
    inputs = ids[:, :-1]
    pair = Pair(rng.integers(0, 33, (5, 6)), np.ones((5, 6), bool), inputs)
    return Batch(pair if name == "seq2seq" else inputs, targets)


def gradient(model: Model, work: Batch, **options: Any) -> tuple[float, bytes]:
    parameters = model.parameters()
    parameters.zero_grad()
    with cr.random.seeded(1), cr.random.step(3):
        loss, _ = backward(model.train(), work, **options)
    return loss, parameters.grad.tobytes()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("recompute", [False, True])
def test_with_fused_gradient_or_in_backward_the_bits_are_the_same(
    name: str, dtype: type, recompute: bool
) -> None:
    cr.seed(0)
    model = MODELS[name]()
    if dtype is np.float64:
        model.to(dtype)
    model.recompute = recompute
    work = work_for(name)
    assert model.fused_loss
    for options in ({}, {"accumulate": 3}, {"accumulate": 3, "factor": 65536.0}):
        fused = gradient(model, work, **options)
        model.fused_loss = False
        assert gradient(model, work, **options) == fused
        model.fused_loss = True


class Looked(GPT):
    """A model that computes a loss it does not return."""

    def loss(self, inputs: Any, targets: Any) -> Tensor:
        super().loss(inputs, targets).item()
        return super().loss(inputs, targets)


def test_a_model_with_a_loss_of_its_own_is_not_fused() -> None:
    cr.seed(0)
    model, plain = Looked(GPTConfig(1, 2, 16, block_size=8, vocab_size=33)), MODELS["gpt"]
    assert not Looked.fused_loss and plain().fused_loss
    work = work_for("gpt")
    right = gradient(model, work)
    model.fused_loss = True
    with pytest.raises(GraphError, match="computed its gradients in forward, and backward did not reach it"):
        gradient(model, work)
    model.fused_loss = False
    assert gradient(model, work) == right
