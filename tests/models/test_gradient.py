"""The gradient of a batch: however it is cut, and whenever the output layer computes its loss."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Tensor
from chainrule.autograd.deferred import Deferred
from chainrule.data import Masked, Pair
from chainrule.models import (
    GPT,
    IGNORE,
    LSTMLM,
    BERTPretraining,
    BERTPretrainingConfig,
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

module = importlib.import_module("chainrule.ops.losses.linear_cross_entropy")

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
def test_deferred_or_not_the_bits_are_the_same(
    name: str, dtype: type, recompute: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cr.seed(0)
    model = MODELS[name]()
    if dtype is np.float64:
        model.to(dtype)
    model.recompute = recompute
    work = work_for(name)
    assert isinstance(model.losses_and_state(work)[0][0], Deferred)
    for options in ({}, {"accumulate": 3}, {"accumulate": 3, "factor": 65536.0}):
        deferred = gradient(model, work, **options)
        with monkeypatch.context() as patch:
            patch.setattr(cr.ops.linear_cross_entropy, "value_and_grad", None)
            assert gradient(model, work, **options) == deferred


class Looked(GPT):
    """A model that computes a loss it does not return, and reads the one that it does."""

    def loss(self, inputs: Any, targets: Any) -> Tensor:
        super().loss(inputs, targets)
        loss = super().loss(inputs, targets)
        assert loss.item() > 0
        return loss


def test_a_model_may_read_its_loss() -> None:
    config = GPTConfig(1, 2, 16, block_size=8, vocab_size=33)
    results = []
    for kind in (GPT, Looked):
        cr.seed(0)
        results.append(gradient(kind(config), work_for("gpt")))
    assert results[0] == results[1]


def test_one_part_of_the_loss_may_depend_on_frozen_parameters_only() -> None:
    cr.seed(0)
    config = BERTPretrainingConfig(n_layer=1, n_head=2, n_embd=8, n_hidden=16, block_size=8, vocab_size=11)
    model = BERTPretraining(config).freeze()
    model.cls.predictions.unfreeze()
    ids = np.arange(8).reshape(1, 8)
    inputs = Masked(ids, np.ones((1, 8), bool), np.zeros((1, 8), int), np.array([1]))
    loss, gradients = gradient(model, Batch(inputs, ids))
    assert loss > 0 and any(gradients)
    with pytest.raises(cr.GraphError, match="depends on nothing that requires a gradient"):
        gradient(model.freeze(), Batch(inputs, ids))
