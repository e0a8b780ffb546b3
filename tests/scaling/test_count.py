"""Counts by formula against models that exist: parameters, products that are made, arrays that are kept."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule import native, nn
from chainrule.autograd import tape
from chainrule.autograd.mode import mode
from chainrule.errors import ConfigError
from chainrule.generate.weights import FORMATS, pack
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig, MLPConfig
from chainrule.ops import linear_cross_entropy
from chainrule.optim import AdamW
from chainrule.scaling import (
    Batch,
    bert,
    count,
    encoder_decoder,
    flops,
    gpt,
    kept_for_backward,
    lora,
    parameters,
    parts,
    parts_of,
    running_memory,
    total,
    training_memory,
)
from chainrule.scaling.parts import Attend
from tests.scaling.measured import kept_bytes, step_products
from tests.vectors import vector

MODELS: dict[type[Any], type[Any]] = {GPTConfig: GPT, LlamaConfig: Llama}

gpts = st.builds(
    lambda heads, size, **rest: GPTConfig(n_head=heads, n_embd=heads * size, **rest),
    heads=st.integers(1, 3),
    size=st.integers(2, 9),
    n_layer=st.integers(1, 3),
    block_size=st.integers(9, 12),
    vocab_size=st.integers(2, 40),
    bias=st.booleans(),
)
llamas = st.builds(
    lambda kv, group, pairs, **rest: LlamaConfig(
        n_head=kv * group, n_kv_head=kv, n_embd=kv * group * 2 * pairs, **rest
    ),
    kv=st.integers(1, 2),
    group=st.integers(1, 3),
    pairs=st.integers(1, 4),
    n_layer=st.integers(1, 3),
    n_hidden=st.integers(1, 30),
    block_size=st.integers(9, 12),
    vocab_size=st.integers(2, 40),
    tied=st.booleans(),
)
configs = st.one_of(gpts, llamas)
batches = st.builds(Batch, rows=st.integers(1, 3), tokens=st.integers(1, 9))


def made(config: Any) -> Any:
    cr.seed(0)
    return MODELS[type(config)](config)


def texts(config: Any, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(0).integers(config.vocab_size, size=(batch.rows, batch.tokens + 1))
    return ids[:, :-1], ids[:, 1:]


# -- parameters ----------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(configs)
def test_parameters_are_those_of_the_model_by_component(config: Any) -> None:
    found = parameters(parts_of(config))
    model = made(config)
    assert sum(found.values()) == config.n_params == model.count()
    by_name = dict.fromkeys(found, 0)
    for name, param in model.named_parameters():
        by_name[component(name)] += param.size
    assert found == by_name


def component(name: str) -> str:
    words = (
        ("embedding", "wte wpe embed_tokens"),
        ("norms", "ln_ norm"),
        ("attention", "attn"),
        ("mlp", "mlp"),
    )
    return next((part for part, marks in words if any(m in name for m in marks.split())), "head")


@pytest.mark.requirement("R-453")
def test_the_base_model_under_each_reading() -> None:
    v = vector("der-param-counts-base")
    sizes = {"vocab_size": v.inputs["V"], "width": v.inputs["d"], "hidden": v.inputs["d_ff"]}
    sizes |= {"layers": v.inputs["N"], "heads": v.inputs["h"]}

    def all_of(**reading: Any) -> int:
        return sum(parameters(encoder_decoder(**sizes, **reading)).values())

    def blocks(**reading: Any) -> int:
        found = parameters(encoder_decoder(**sizes, **reading))
        return found["attention"] + found["mlp"] + found["norms"]

    one = sum(parameters(encoder_decoder(**sizes | {"layers": 1}, tied=True, head_bias=False)).values())
    table, d, d_ff = sizes["vocab_size"] * sizes["width"], sizes["width"], sizes["hidden"]
    cross = 4 * d * d + 2 * d  # what a decoder block has more: attention to the source, and its norm
    v.check(
        {
            "encoder_block": (one - table - cross) // 2,
            "decoder_block": (one - table + cross) // 2,
            "blocks_12": blocks(),
            "one_embedding_untied_output_bias": all_of(),
            "two_embeddings_untied_output_bias": all_of(source_vocab_size=v.inputs["V"]),
            "all_tied_output_bias": all_of(tied=True),
        }
    )
    vector("004-12.8-encoder-block").check((one - table - cross) // 2 - d_ff - d)
    vector("004-12.8-blocks").check(blocks(mlp_bias=False))
    vector("004-12.8-total").check(all_of(mlp_bias=False, head_bias=False))
    vector("004-12.8-embedding").check(parameters(encoder_decoder(**sizes))["embedding"])


@pytest.mark.requirement("R-454")
def test_gpt_3_from_its_sizes() -> None:
    v = vector("004-12.8-gpt3")
    d, N, V, T = (v.inputs[name] for name in ("d", "N", "V", "n_ctx"))
    config = GPTConfig(n_layer=N, n_head=96, n_embd=d, block_size=T, vocab_size=V)
    v.check(sum(parameters(gpt(config)).values()))
    assert v.inputs["d_ff"] == 4 * d


@pytest.mark.requirement("R-455")
def test_output_projection_and_embeddings() -> None:
    (output,) = (
        part.packed
        for part in encoder_decoder(layers=1)
        if getattr(part, "name", "") == "output" and part.over == "source"
    )
    vector("004-10.2.2-WO").check(output)
    assert output == nn.MultiHeadAttention(512, 8).out_proj.weight.size  # type: ignore[union-attr]
    for name in ("004-7.4.3-gpt2-embedding", "004-7.4.3-gpt3-embedding"):
        v = vector(name)
        table = parts_of(GPTConfig(n_head=1, n_embd=v.inputs["d"], vocab_size=v.inputs["V"]))[0]
        v.check(table.params)


def test_published_sizes() -> None:
    """The totals that the authors' checkpoints have."""
    assert sum(parameters(bert(pretraining=False)).values()) == 109_482_240
    assert sum(parameters(bert()).values()) == 110_106_428
    gpt2 = GPTConfig(n_layer=12, n_head=12, n_embd=768, block_size=1024, vocab_size=50257)
    assert sum(parameters(parts_of(gpt2)).values()) == 124_439_808


@pytest.mark.requirement("R-457")
def test_trainable_against_all_parameters_of_low_rank_changes() -> None:
    """LoRA on the query and value matrices of the base model: 6 + 6 + 6 attentions, two matrices each."""
    r, d = 8, 512
    base_model = encoder_decoder()
    assert lora(base_model, r) == 36 * r * (d + d)
    attention = nn.MultiHeadAttention(d, 8)
    attention.freeze()
    attention.q_proj, attention.v_proj = (
        nn.LoRALinear(base, rank=r)
        for base in (attention.q_proj, attention.v_proj)  # type: ignore[assignment]
    )
    assert attention.count(trainable=True) == 2 * r * (d + d) == lora(base_model, r) // 18
    assert attention.count() == 4 * d * d + attention.count(trainable=True)
    assert lora(base_model, r) / sum(parameters(base_model).values()) < 0.004


# -- work ------------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(configs, batches)
def test_the_work_is_the_products_that_are_made(config: Any, batch: Batch) -> None:
    model = made(config)
    inputs, targets = texts(config, batch)
    forward, backward = step_products(lambda: model.loss(inputs, targets))
    work = flops(parts_of(config), batch, dense=True)
    attend = next(part for part in parts_of(config) if isinstance(part, Attend)).work(batch, dense=True)
    attention = "packed_attention" if isinstance(config, GPTConfig) else "attention"
    assert forward[attention] == config.n_layer * attend.forward
    assert backward[attention] == config.n_layer * (attend.backward + attend.again)
    assert forward["linear_cross_entropy"] == work["head"].forward
    assert backward["linear_cross_entropy"] == work["head"].backward
    assert sum(forward.values()) == total(work).forward
    assert sum(backward.values()) == total(work).backward + total(work).again


def test_many_logits_are_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    config, batch = GPTConfig(1, 2, 8, 8, 20), Batch(2, 8)
    monkeypatch.setitem(linear_cross_entropy.forward.__globals__, "KEEP", 100)
    monkeypatch.setattr(parts, "KEEP", 100)
    model = made(config)
    inputs, targets = texts(config, batch)
    _, backward = step_products(lambda: model.loss(inputs, targets))
    head = flops(parts_of(config), batch)["head"]
    assert head.again == head.forward and backward["linear_cross_entropy"] == 3 * head.forward
    params = model.parameters()
    assert kept_bytes(model.loss(inputs, targets), params) == expected(config, batch)


@given(batches, st.integers(0, 5))
def test_a_causal_mask_leaves_half_of_the_scores(batch: Batch, past: int) -> None:
    allowed = cr.ops.causal_mask(batch.tokens, past + batch.tokens)
    reading = Batch(batch.rows, batch.tokens, past=past)
    attend = Attend(heads=3, size=5, kv_heads=3)
    assert attend.pairs(reading) == batch.rows * np.count_nonzero(allowed)
    assert attend.pairs(reading, dense=True) == batch.rows * allowed.size


def test_a_new_token_costs_the_same_with_a_cache_as_its_share_without() -> None:
    model, T = parts_of(GPTConfig()), 64
    step = total(flops(model, Batch(tokens=1, past=T - 1))).forward
    more = total(flops(model, Batch(tokens=T))).forward - total(flops(model, Batch(tokens=T - 1))).forward
    assert step == more


# -- memory ------------------------------------------------------------------------------------------------------------


def expected(config: Any, batch: Batch) -> int:
    """By formula; without the kernels, joining the heads makes a copy of what they found."""
    found = sum(kept_for_backward(parts_of(config), batch).values())
    plain = not native.available() or mode.backend == "reference"
    copied = plain and batch.tokens > 1 and config.n_head > 1
    return found + (4 * config.n_layer * batch.rows * batch.tokens * config.n_embd if copied else 0)


@settings(max_examples=30, deadline=None)
@given(configs, batches)
def test_what_is_kept_is_what_the_tape_holds(config: Any, batch: Batch) -> None:
    model = made(config)
    params = model.parameters()
    assert kept_bytes(model.loss(*texts(config, batch)), params) == expected(config, batch)


@pytest.mark.parametrize("config", [GPTConfig(2, 2, 16, 12, 9), LlamaConfig(2, 4, 2, 16, 24, 12, 9)])
def test_large_outputs_of_cheap_ops_are_not_kept(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch(rows=3, tokens=12)
    everything = sum(kept_for_backward(parts_of(config), batch).values())
    for module in (tape, count):
        monkeypatch.setattr(module, "LARGE", 1000)
    model = made(config)
    params = model.parameters()
    assert kept_bytes(model.loss(*texts(config, batch)), params) == expected(config, batch)
    inside = 4 * config.n_embd if isinstance(config, GPTConfig) else config.n_hidden
    saved = config.n_layer * (2 * config.n_embd + inside) + config.n_embd
    assert sum(kept_for_backward(parts_of(config), batch).values()) == everything - 4 * saved * 36


def test_dropout_keeps_its_masks() -> None:
    config, batch = GPTConfig(2, 2, 16, 12, 9, dropout=0.3), Batch(rows=3, tokens=12)
    model = made(config)
    params = model.parameters()
    assert kept_bytes(model.loss(*texts(config, batch)), params) == expected(config, batch)
    without = dataclasses.replace(config, dropout=0.0)
    assert (
        expected(config, batch) - expected(without, batch) == 2 * 36 * 64
    )  # a byte for each number inside the MLPs


def test_weights_gradients_and_optimiser() -> None:
    config = GPTConfig(n_embd=32, n_head=2)  # whole lines of 16 numbers: nothing is lost between parameters
    model = made(config)
    optimiser = AdamW(model.parameters(), 1e-3)
    found = training_memory(parts_of(config), Batch(2, 8))
    assert found["weights"] == model.parameters().data.nbytes
    assert found["gradients"] == model.parameters().grad.nbytes
    assert found["optimiser"] == sum(array.nbytes for array in optimiser.arrays.values())
    assert found["activations"] == sum(kept_for_backward(parts_of(config), Batch(2, 8)).values())


@pytest.mark.parametrize("config", [GPTConfig(n_embd=64), LlamaConfig(n_embd=64, n_hidden=96)])
@pytest.mark.parametrize("weights", FORMATS)
def test_weights_and_cache_of_a_model_that_writes(config: Any, weights: str) -> None:
    model = made(config)
    decoder = cr.generate.Decoder(model, weights=weights, batch=2)
    with cr.backend("reference"):
        plain = cr.generate.Decoder(model, batch=2)
        plain.prefill([[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]])
    cache = sum(x.nbytes for pair in plain._engine.cache.values() for x in pair)  # type: ignore[attr-defined]
    found = running_memory(parts_of(config), Batch(rows=2, tokens=1, past=4), weights)
    assert found["cache"] == cache and decoder.vocab_size == config.vocab_size
    held = 0
    for name, param in model.named_parameters():
        packs = param.ndim == 2 and "wpe" not in name
        held += pack(param.array, weights).nbytes if packs else param.array.nbytes
    assert found["weights"] == held


def test_what_cannot_be_counted_says_so() -> None:
    with pytest.raises(
        ConfigError, match=r"count: MLPConfig has no list of parts \(must be one of GPTConfig"
    ):
        parts_of(MLPConfig())
