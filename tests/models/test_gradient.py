"""The gradient of a batch: however it is cut, and whenever the output layer computes its loss."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from chainrule.models.gradient import backward, batch_count, microbatch_count
from chainrule.models.language_model import TransformerLM
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


@pytest.mark.parametrize(("name", "count"), [("gpt", 5), ("llama", 5), ("lstm", 1), ("seq2seq", 1)])
def test_a_large_batch_is_split_by_itself(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    work = work_for(name)  # 5 rows of 8 tokens
    cr.seed(0)
    model = MODELS[name]()
    assert batch_count(model, work.inputs) == 1
    whole = gradient(model, work)
    assert whole == gradient(model, work, accumulate=1)
    monkeypatch.setattr(TransformerLM, "microbatch_tokens", 12)
    assert batch_count(model, work.inputs) == count and batch_count(model, work.inputs, 2) == 2
    split = gradient(model, work)
    assert split == gradient(model, work, accumulate=count)
    assert (split == whole) == (count == 1)
    compiled = cr.compile(model)
    for _ in range(4):
        assert gradient(model, work, gradient=compiled.gradient) == split


@given(rows=st.integers(1, 300), tokens=st.integers(1, 3000), ranks=st.integers(1, 5))
def test_microbatches_are_small_and_each_rank_has_as_many(rows: int, tokens: int, ranks: int) -> None:
    most = 1024
    count = microbatch_count(most, rows, tokens, ranks)
    assert count % ranks == 0
    each = -(-rows // count)  # rows in the largest microbatch
    assert each == 1 or (each - 1) * tokens < most
    if count > ranks:  # the fewest, or up to twice as many, of one size
        assert rows * tokens > most * ranks
        assert rows % count == 0 or -(-rows * tokens // (most * ranks)) * ranks >= count
    assert microbatch_count(None, rows, tokens, ranks) == ranks


@pytest.mark.parametrize("rows", [128, 119])  # 119: microbatches of 15 and of 14 rows
def test_a_large_batch_takes_the_memory_of_its_microbatches(rows: int) -> None:
    whole, default = (growth_of(rows, f"accumulate={n}") for n in (1, None))
    assert default < 0.4 * whole


def test_what_has_no_shape_or_no_rows_is_one_microbatch() -> None:
    model, ids = MODELS["gpt"](), np.array([[1, 2, 3], [3, 4, 5]])
    assert batch_count(model, ids.tolist()) == batch_count(model, ids[:0]) == batch_count(model, ids) == 1
    assert backward(model, Batch(ids.tolist(), ids)) == backward(model, Batch(ids, ids))
    assert backward(model, Batch(ids[:0], ids[:0]))[0] == 0


def test_the_default_must_not_change() -> None:
    """Runs that were begun with it are resumed and replayed by it."""
    sizes = [(32, 128), (16, 256), (9, 256), (7, 2048), (5, 800), (64, 64), (31, 128), (1, 10_000)]
    narrow, wide = (
        GPT.abstract(
            GPTConfig(n_layer=1, n_head=4, n_embd=n, block_size=2048, vocab_size=9)
        ).microbatch_tokens
        for n in (511 // 4 * 4, 512)
    )
    assert [microbatch_count(narrow, *size) for size in sizes] == [4, 4, 3, 7, 5, 4, 4, 1]
    assert [microbatch_count(wide, *size) for size in sizes] == [2, 2, 3, 7, 2, 2, 2, 1]
    assert [microbatch_count(wide, 32, 256, ranks) for ranks in (1, 2, 3, 4)] == [4, 4, 6, 4]
    assert MODELS["lstm"]().microbatch_tokens is None


def growth_of(rows: int, options: str) -> float:
    """MB by which the peak of a process grows with a batch of more rows than 16."""
    code = f"""
import numpy as np, chainrule as cr
from chainrule.machine import peak_memory
from chainrule.models.microbatch import Batch
model = cr.models.make("gpt", n_layer=4, n_head=2, n_embd=128, block_size=128, vocab_size=33)
compiled, peaks = cr.compile(model), []
for rows in (16, {rows}):
    for _ in range(4):
        model.parameters().zero_grad()
        compiled.backward(Batch(*np.zeros((2, rows, 128), int)), {options})
        model.parameters().data[:] *= 0.9
    peaks.append(peak_memory())
print((peaks[1] - peaks[0]) / 1e6)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


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
