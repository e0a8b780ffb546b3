"""Counts by formula against models that exist: parameters, products that are made, arrays that are kept."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule import native, nn
from chainrule.autograd import tape
from chainrule.autograd.mode import mode
from chainrule.generate.engine.weights import FORMATS, pack
from chainrule.models import (
    GPT,
    IGNORE,
    BERTPretraining,
    BERTPretrainingConfig,
    GPTConfig,
    Llama,
    LlamaConfig,
    Seq2Seq,
    Seq2SeqConfig,
)
from chainrule.ops import linear_cross_entropy
from chainrule.optim import AdamW
from chainrule.scaling import (
    Batch,
    flops,
    kept_for_backward,
    lora,
    parameters,
    running_memory,
    step_graph,
    total,
    training_memory,
)
from chainrule.scaling.complexity import block_parameters, gpt_parameters
from chainrule.scaling.presets import PRESETS
from chainrule.trace import Node
from chainrule.trace.cost import heads_of, work
from chainrule.trace.count import step_batch, step_memory
from tests.trace.measured import kept_bytes, step_products
from tests.vectors import vector

MODELS: dict[type[Any], type[Any]] = {
    GPTConfig: GPT,
    LlamaConfig: Llama,
    Seq2SeqConfig: Seq2Seq,
    BERTPretrainingConfig: BERTPretraining,
}

heads, width = st.integers(1, 3), st.integers(2, 9)
sizes = {"n_layer": st.integers(1, 3), "block_size": st.integers(9, 12), "vocab_size": st.integers(2, 40)}
dropouts = st.sampled_from([0.0, 0.3])


def wide(config: type[Any], heads: int, size: int, **rest: Any) -> Any:
    return config(n_head=heads, n_embd=heads * size, **rest)


gpts = st.builds(
    wide,
    st.just(GPTConfig),
    heads,
    width,
    n_hidden=st.none() | st.integers(1, 30),
    bias=st.booleans(),
    tied=st.booleans(),
    dropout=dropouts,
    **sizes,
)
llamas = st.builds(
    lambda kv, group, pairs, **rest: LlamaConfig(
        n_head=kv * group, n_kv_head=kv, n_embd=kv * group * 2 * pairs, **rest
    ),
    kv=st.integers(1, 2),
    group=st.integers(1, 3),
    pairs=st.integers(1, 4),
    head_dim=st.sampled_from([None, 2, 6]),
    attention_bias=st.sampled_from(["none", "qkv", "all"]),
    n_hidden=st.integers(1, 30),
    tied=st.booleans(),
    **sizes,
)
seq2seqs = st.builds(
    wide,
    st.just(Seq2SeqConfig),
    heads,
    width,
    n_hidden=st.none() | st.integers(1, 30),
    source_vocab_size=st.none() | st.integers(2, 40),
    norm=st.sampled_from(["post", "pre"]),
    positions=st.sampled_from(["sinusoidal", "learned"]),
    activation=st.sampled_from(["relu", "gelu", "gelu_tanh", "silu"]),
    bias=st.booleans(),
    tied=st.booleans(),
    scale_embedding=st.booleans(),
    dropout=dropouts,
    **sizes,
)
berts = st.builds(
    wide,
    st.just(BERTPretrainingConfig),
    heads,
    width,
    n_hidden=st.integers(1, 30),
    next_sentence=st.booleans(),
    dropout=dropouts,
    **sizes,
)
configs = st.one_of(gpts, llamas, seq2seqs, berts)
batches = st.builds(
    Batch,
    rows=st.integers(1, 3),
    tokens=st.integers(1, 9),
    source=st.integers(1, 9),
    masked=st.integers(1, 3),
).map(lambda b: dataclasses.replace(b, masked=min(b.masked, b.rows * b.tokens)))


def made(config: Any) -> Any:
    cr.seed(0)
    return MODELS[type(config)](config)


def abstract(config: Any) -> Any:
    return MODELS[type(config)].abstract(config)


def texts(config: Any, batch: Batch) -> tuple[Any, np.ndarray]:
    """Inputs and targets for the model's loss."""
    rng = np.random.default_rng(0)
    ids = rng.integers(config.vocab_size, size=(batch.rows, batch.tokens + 1))
    inputs, targets = ids[:, :-1], ids[:, 1:]
    if isinstance(config, Seq2SeqConfig):
        V = config.source_vocab_size or config.vocab_size
        return (rng.integers(V, size=(batch.rows, batch.source)), None, inputs), targets
    if isinstance(config, BERTPretrainingConfig):
        asked = rng.permutation(batch.rows * batch.tokens).reshape(inputs.shape) < batch.masked
        return (inputs, None, None, np.arange(batch.rows) % 2), np.where(asked, inputs, IGNORE)
    return inputs, targets


# -- parameters ----------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(configs)
def test_parameters_are_those_of_the_model_by_component(config: Any) -> None:
    found = parameters(abstract(config))
    model = made(config)
    assert sum(found.values()) == config.n_params == model.count()
    by_name = dict.fromkeys(found, 0)
    for name, param in model.named_parameters():
        by_name[component(name)] += param.size
    assert found == by_name


MARKS = (
    ("norms", "ln_ norm LayerNorm"),
    ("head", "lm_head final_logits cls. pooler"),
    ("embedding", "wte wpe embed shared"),
    ("attention", "attn attention"),
    ("mlp", "mlp fc1 fc2 intermediate output"),
)


def component(name: str) -> str:
    """Where a parameter belongs, by its name."""
    return next(part for part, marks in MARKS if any(mark in name for mark in marks.split()))


@pytest.mark.requirement("R-453")
def test_the_base_model_under_each_reading() -> None:
    v = vector("der-param-counts-base")
    base = Seq2SeqConfig.base()
    V, d, d_ff, N, h = (v.inputs[name] for name in ("V", "d", "d_ff", "N", "h"))
    assert (base.vocab_size, base.n_embd, base.inside, base.n_layer, base.n_head) == (V, d, d_ff, N, h)

    def blocks(config: Any) -> int:
        found = parameters(abstract(config))
        return found["attention"] + found["mlp"] + found["norms"]

    one = blocks(dataclasses.replace(base, n_layer=1))
    cross = 4 * d * d + 2 * d  # what a decoder block has more: attention to the source, and its norm
    v.check(
        {
            "encoder_block": (one - cross) // 2,
            "decoder_block": (one + cross) // 2,
            "blocks_12": blocks(base),
            "one_embedding_untied_output_bias": base.n_params,
            "two_embeddings_untied_output_bias": dataclasses.replace(base, source_vocab_size=V).n_params,
            "all_tied_output_bias": dataclasses.replace(base, tied=True).n_params,
        }
    )
    # The text counts no biases; of the traced model they are the vectors outside of norms.
    vectors = sum(
        param.size for name, param in abstract(base).named_parameters() if "fc" in name and param.ndim == 1
    )
    encoder, decoder = block_parameters(d, d_ff), block_parameters(d, d_ff, cross=True, norms=3)
    assert (one - cross) // 2 - d_ff - d == encoder and (one + cross) // 2 - d_ff - d == decoder
    assert N * (encoder + decoder) == blocks(base) - vectors
    vector("004-12.8-encoder-block").check(encoder)
    vector("004-12.8-blocks").check(N * (encoder + decoder))
    vector("004-12.8-total").check(base.n_params - vectors - V)
    vector("004-12.8-embedding").check(parameters(abstract(base))["embedding"])


@pytest.mark.requirement("R-454")
def test_gpt_3_from_its_sizes() -> None:
    v = vector("004-12.8-gpt3")
    d, N, V, T = (v.inputs[name] for name in ("d", "N", "V", "n_ctx"))
    config = GPTConfig(n_layer=N, n_head=96, n_embd=d, block_size=T, vocab_size=V)
    v.check(sum(parameters(abstract(config)).values()))
    assert v.inputs["d_ff"] == 4 * d and gpt_parameters(N, d, T, V) == config.n_params


@pytest.mark.requirement("R-455")
def test_output_projection_and_embeddings() -> None:
    base = abstract(dataclasses.replace(Seq2SeqConfig.base(), n_layer=1))
    output = dict(base.named_parameters())["model.encoder.layers.0.self_attn.out_proj.weight"].size
    vector("004-10.2.2-WO").check(output)
    assert output == nn.MultiHeadAttention(512, 8).out_proj.weight.size  # type: ignore[union-attr]
    for name in ("004-7.4.3-gpt2-embedding", "004-7.4.3-gpt3-embedding"):
        v = vector(name)
        model = abstract(GPTConfig(n_head=1, n_embd=v.inputs["d"], vocab_size=v.inputs["V"]))
        v.check(model.wte.weight.size)


def test_published_sizes() -> None:
    """The totals that the authors' checkpoints have."""
    assert sum(parameters(abstract(PRESETS["bert-base"].config)).values()) == 110_106_428
    gpt2 = GPTConfig(n_layer=12, n_head=12, n_embd=768, block_size=1024, vocab_size=50257)
    assert sum(parameters(abstract(gpt2)).values()) == 124_439_808 == gpt_parameters(12, 768, 1024, 50257)


@pytest.mark.requirement("R-457")
def test_trainable_against_all_parameters_of_low_rank_changes() -> None:
    """LoRA on the query and value matrices of the base model: 6 + 6 + 6 attentions, two matrices each."""
    r, d = 8, 512
    base_model = abstract(Seq2SeqConfig.base())
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
    counted = flops(abstract(config), batch, dense=True)
    attention = "packed_attention" if isinstance(config, GPTConfig) else "attention"
    attend = total({str(i): work(a, dense=True) for i, a in enumerate(attentions(config, batch))})
    assert forward[attention] == attend.forward
    assert backward[attention] == attend.backward + attend.recompute
    assert sum(forward.values()) == total(counted).forward
    assert sum(backward.values()) == total(counted).backward + total(counted).recompute


def test_many_logits_are_computed_once_together_with_their_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    config, batch = GPTConfig(1, 2, 8, 8, 20), Batch(2, 8)
    monkeypatch.setitem(linear_cross_entropy.forward.__globals__, "KEEP", 100)
    model = made(config)
    inputs, targets = texts(config, batch)
    head = flops(abstract(config), batch)["head"]
    forward, backward = step_products(lambda: model.loss(inputs, targets))
    assert "linear_cross_entropy" not in forward
    assert backward["linear_cross_entropy"] == 3 * head.forward == head.total
    with monkeypatch.context() as patch:
        patch.setattr(linear_cross_entropy, "value_and_grad", None)
        forward, backward = step_products(lambda: model.loss(inputs, targets))
    assert forward["linear_cross_entropy"] == head.forward
    assert backward["linear_cross_entropy"] == 3 * head.forward
    params = model.parameters()
    assert kept_bytes(model.loss(inputs, targets), params) == expected(config, batch)


@given(batches, st.integers(0, 5))
def test_a_causal_mask_leaves_half_of_the_scores(batch: Batch, past: int) -> None:
    allowed = cr.ops.causal_mask(batch.tokens, past + batch.tokens)
    config = GPTConfig(n_layer=1, n_head=3, n_embd=15, block_size=9)
    (attend,) = attentions(config, batch)
    pairs, every = (work(attend, past=past, dense=dense).forward // (2 * 2 * 15) for dense in (False, True))
    assert pairs == batch.rows * np.count_nonzero(allowed)
    assert every == batch.rows * allowed.size


def test_a_new_token_costs_the_same_with_a_cache_as_its_share_without() -> None:
    model, T = abstract(GPTConfig()), 64
    step = total(flops(model, Batch(tokens=1, past=T - 1))).forward
    more = total(flops(model, Batch(tokens=T))).forward - total(flops(model, Batch(tokens=T - 1))).forward
    assert step == more


# -- memory ------------------------------------------------------------------------------------------------------------


def attentions(config: Any, batch: Batch) -> list[Node]:
    graph = step_graph(abstract(config), batch)
    return [node for node in graph.nodes if node.op.name in ("attention", "packed_attention")]


def expected(config: Any, batch: Batch) -> int:
    """As it was traced; without the kernels, joining the heads makes a copy of what they found."""
    found = kept_for_backward(abstract(config), batch)
    if native.available() and mode.backend == "native":
        return found
    outputs = [heads_of(node)[0].shape for node in attentions(config, batch)]
    return found + sum(4 * B * H * T * D for B, H, T, D in outputs if H > 1 and T > 1)


@pytest.mark.requirement("R-452")
@settings(max_examples=30, deadline=None)
@given(configs, batches)
def test_what_is_kept_is_what_the_tape_holds(config: Any, batch: Batch) -> None:
    model = made(config)
    params = model.parameters()
    assert kept_bytes(model.loss(*texts(config, batch)), params) == expected(config, batch)


LARGER = [
    GPTConfig(2, 2, 16, 12, 9),
    LlamaConfig(2, 4, 2, 16, 24, 12, 9),
    Seq2SeqConfig(2, 2, 16, block_size=12, vocab_size=9, activation="gelu"),
    Seq2SeqConfig(2, 2, 16, block_size=12, vocab_size=9, norm="pre", dropout=0.0),
    BERTPretrainingConfig(2, 2, 16, 20, 12, 9),
    BERTPretrainingConfig(2, 2, 16, 20, 12, 9, dropout=0.0),
]


@pytest.mark.parametrize("config", LARGER, ids=lambda config: type(config).__name__)
def test_large_outputs_of_cheap_ops_are_not_kept(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch(rows=3, tokens=12, source=11, masked=20)
    everything = kept_for_backward(abstract(config), batch)
    monkeypatch.setattr(tape, "LARGE", 1000)
    model = made(config)
    params = model.parameters()
    assert kept_bytes(model.loss(*texts(config, batch)), params) == expected(config, batch)
    less = everything - kept_for_backward(abstract(config), batch)
    if isinstance(config, GPTConfig | LlamaConfig):
        inside = config.inside if isinstance(config, GPTConfig) else config.n_hidden
        saved = config.n_layer * (2 * config.n_embd + inside) + config.n_embd
        assert less == 4 * saved * 36
    assert less > 0


def test_dropout_keeps_its_masks() -> None:
    config, batch = GPTConfig(2, 2, 16, 12, 9, dropout=0.3), Batch(rows=3, tokens=12)
    model = made(config)
    params = model.parameters()
    assert kept_bytes(model.loss(*texts(config, batch)), params) == expected(config, batch)
    without = dataclasses.replace(config, dropout=0.0)
    assert (
        expected(config, batch) - expected(without, batch) == 2 * 36 * 64
    )  # a byte for each number inside the MLPs


def test_weights_gradients_and_optimizer() -> None:
    config = GPTConfig(n_embd=32, n_head=2)  # whole lines of 16 numbers: nothing is lost between parameters
    model = made(config)
    optimizer = AdamW(model.parameters(), 1e-3)
    found = training_memory(abstract(config), Batch(2, 8))
    assert found["weights"] == model.parameters().data.nbytes
    assert found["gradients"] == model.parameters().grad.nbytes
    assert found["optimizer"] == sum(array.nbytes for array in optimizer.arrays.values())
    assert found["activations"] == kept_for_backward(abstract(config), Batch(2, 8))


@pytest.mark.parametrize("config", [GPTConfig(n_embd=64), LlamaConfig(n_embd=64, n_hidden=96, head_dim=32)])
@pytest.mark.parametrize("weights", FORMATS)
def test_weights_and_cache_of_a_model_that_writes(config: Any, weights: str) -> None:
    model = made(config)
    decoder = cr.generate.Decoder(model, weights=weights, batch=2)
    with cr.backend("reference"):
        plain = cr.generate.Decoder(model, batch=2)
        plain.prefill([[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]])
    cache = sum(x.nbytes for state in plain._engine.state.values() for x in state[:2])  # type: ignore[attr-defined]
    found = running_memory(abstract(config), Batch(rows=2, tokens=1, past=4), weights)
    assert found["cache"] == cache and decoder.vocab_size == config.vocab_size
    held = 0
    for name, param in model.named_parameters():
        packs = param.ndim == 2 and "wpe" not in name
        held += pack([param], weights).nbytes if packs else param.array.nbytes
    assert found["weights"] == held


def test_a_step_has_memory_for_a_chunk_of_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("chainrule.ops.losses.linear_cross_entropy")
    model = cr.models.make("gpt", n_layer=1, n_head=1, n_embd=64, block_size=64, vocab_size=600)
    monkeypatch.setattr(module, "CHUNK", 1000)
    found = []
    for rows in (64, 1):
        monkeypatch.setattr(module, "ROWS", rows)
        found.append(step_memory(model, step_batch(model, 2, 64)))
    assert (
        found[0] - found[1] == (80 - 16) * 600 * 4
    )  # columns of 64 and of 1, an odd number of cache lines apart
