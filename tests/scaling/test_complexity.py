"""Growth formulas against products that are made and arrays that are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule import nn, ops
from chainrule.errors import ConfigError
from chainrule.models import GPT, GPTConfig, NGram, Seq2Seq, Seq2SeqConfig
from chainrule.scaling import Batch, flops, total
from chainrule.scaling.complexity import (
    activation_numbers,
    comparison,
    count_table,
    dot_products,
    map_numbers,
    one_hot_numbers,
    operations,
    score_count,
)
from tests.trace.measured import counting, kept_bytes, step_products, tape
from tests.vectors import vector

sizes = st.integers(1, 6)


def normal(*shape: int, seed: int = 0) -> cr.Tensor:
    return cr.Tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=True, dtype=np.float32)


@pytest.mark.requirement("R-450")
@settings(max_examples=15, deadline=None)
@given(sizes, sizes, sizes, st.integers(1, 9), st.integers(1, 3))
def test_operations_of_a_block(n: int, m: int, size: int, hidden: int, heads: int) -> None:
    d = heads * size
    block, cross = nn.TransformerBlock(d, heads, hidden), nn.MultiHeadAttention(d, heads)
    want = operations(n, d, hidden, m)
    with counting() as made:
        block(normal(1, n, d))
    assert made["forward attention"] == want["attention"] == 2 * n * n * d
    assert made["forward linear"] == want["projections"] + want["feed-forward"]
    assert want["projections"] == 4 * n * d * d and want["feed-forward"] == 2 * n * d * hidden
    with counting() as made:
        cross(normal(1, n, d), normal(1, m, d))
    assert made["forward attention"] == want["cross-attention"] == 2 * m * n * d


@given(st.integers(1, 50), st.integers(1, 50))
def test_the_count_of_a_whole_encoder_decoder_adds_these_up(n: int, m: int) -> None:
    d, hidden, layers, V = 8, 20, 3, 11
    config = Seq2SeqConfig(n_layer=layers, n_head=2, n_embd=d, n_hidden=hidden, vocab_size=V)
    model = Seq2Seq.abstract(config)
    work = total(flops(model, Batch(tokens=n, source=m), dense=True)).forward
    encoder, decoder = operations(m, d, hidden), operations(n, d, hidden, m)
    projections = 2 * n * d * d + 2 * m * d * d  # of cross-attention: queries and output, keys and values
    assert work == 2 * (
        layers * (sum(encoder.values()) + sum(decoder.values()) + projections) + n * (d + 1) * V
    )


@pytest.mark.requirement("R-451")
@pytest.mark.parametrize(("n", "d"), [(7, 5), (40, 4), (3, 16)])
def test_attention_and_recurrence_compared(n: int, d: int) -> None:
    found = comparison(n, d)
    assert found["attention"] == (n * n * d, 1, 1) and found["recurrence"] == (n * d * d, n, n - 1)
    x = normal(1, n, d)
    with counting() as made:
        ops.attention(x, x, x)
    assert made["forward attention"] == 2 * found["attention"].work  # scores, and the mixing of values
    with counting() as made:
        nn.RNN(d, d)(x)
    assert sum(made.values()) == 2 * found["recurrence"].work  # of the inputs, and of the states


def test_paths_of_attention_and_of_recurrence() -> None:
    """The last output of one attention layer reads the first token itself; a state knows it through n - 1 others."""
    n, d = 6, 3
    x = normal(1, n, d)
    A = ops.attention_weights(x.numpy()[0], x.numpy()[0], causal=True)
    assert A[n - 1, 0] > 0
    cell, state = nn.RNN(d, d), None
    outputs, _ = cell(x)
    for t in range(n):  # the same, one step after the other
        step, state = cell(x[:, t : t + 1], state)
    np.testing.assert_allclose(step.numpy()[:, 0], outputs.numpy()[:, -1], rtol=1e-5, atol=1e-6)
    assert comparison(n, d)["recurrence"].path_length == n - 1


@pytest.mark.requirement("R-452")
def test_memory_of_maps_and_of_activations(monkeypatch: pytest.MonkeyPatch) -> None:
    n, d, h, N = 10, 12, 3, 4

    def maps(run: Any) -> int:
        return sum(
            x.nbytes for r in tape(run) if r.op.name == "softmax" for x in r.saved if hasattr(x, "nbytes")
        )

    hidden = normal(1, n, d)
    outputs = []
    monkeypatch.setattr(ops, "attention", ops.attention.composed)  # with every map written down
    for _ in range(N):
        hidden = nn.TransformerBlock(d, h)(hidden)
        outputs.append(hidden.numpy())
    assert maps(hidden) == 4 * map_numbers(n, h, N)
    assert sum(x.nbytes for x in outputs) == 4 * activation_numbers(n, d, N)


@pytest.mark.requirement("R-452")
def test_memory_of_the_maps_and_activations_of_a_whole_model() -> None:
    """What `inspect` holds of a GPT: a map (n, n) per head and layer, and n d numbers of the stream per layer."""
    n, d, h, N = 10, 12, 3, 4
    model = GPT(GPTConfig(n_layer=N, n_head=h, n_embd=d, block_size=n, vocab_size=7))
    ids = np.arange(n)[None] % 7
    maps = cr.inspect.maps(model, ids)
    assert len(maps) == N
    assert sum(A.nbytes for A in maps.values()) == 4 * map_numbers(n, h, N)
    with cr.capture("h.*.ln_1.layernorm") as seen:
        model(ids)
    assert len(seen) == N
    assert sum(entry.value.nbytes for entry in seen.values()) == 4 * activation_numbers(n, d, N)


def test_our_op_keeps_a_number_per_row_instead_of_the_map() -> None:
    n, h, d = 50, 3, 4
    q, k, v = (normal(1, h, n, d, seed=seed) for seed in range(3))
    nothing = type("", (), {"data": np.empty(0)})
    fused, composed = (kept_bytes(f(q, k, v), nothing) for f in (ops.attention, ops.attention.composed))
    assert fused == 4 * (4 * h * n * d + h * n) and composed > 4 * map_numbers(n, h, 1) > fused


@pytest.mark.requirement("R-294")
def test_heads_cost_what_one_large_head_costs() -> None:
    v = vector("004-10.3-work")
    d, h = v.inputs["d_model"], v.inputs["h"]
    found = dot_products(d, h)
    v.check(
        {"split": found["cut into heads"], "full_size_ratio": found["full-size heads"] / found["one head"]}
    )

    def work(heads: int, size: int, n: int = 3) -> int:
        x = normal(1, heads, n, size)
        with counting() as made:
            ops.attention(x, x, x)
        return made["forward attention"] // (2 * n * n)

    assert work(h, d // h) == found["cut into heads"] == work(1, d) == found["one head"]
    assert work(h, d) == found["full-size heads"]
    with pytest.raises(ConfigError, match="width 10, 3 heads"):
        dot_products(10, 3)


@pytest.mark.requirement("R-456")
def test_scores_grow_with_the_square() -> None:
    v = vector("004-9.6-score-counts")
    few, many = map(score_count, v.inputs["n"])
    v.check({"scores": [few, many], "ratio": many // few})
    ratios = []
    for n in (32, 512, 8192):  # the projections grow with n alone, so the whole block tends to 4
        work = [sum(operations(length, 16, 64).values()) for length in (n, 2 * n)]
        ratios.append(work[1] / work[0])
        assert step_scores(n // 32) * 4 == step_scores(n // 16)
    assert ratios == sorted(ratios) and ratios[0] < 3 and ratios[2] == pytest.approx(4, rel=0.02)


def step_scores(n: int) -> int:
    """Scores that attention really makes of n tokens."""
    x = normal(n, 2)
    return int(ops.attention_weights(x, x).size)


@pytest.mark.requirement("R-458")
def test_storage_of_counts_and_of_one_hot_rows() -> None:
    v = vector("der-ngram-storage")
    V = v.inputs["V"]
    v.check([rows * columns for rows, columns in (count_table(V, n) for n in v.inputs["n"])])
    model = NGram.fit([[1, 2, 3]], order=2, vocab_size=V)
    assert model.adjacency().shape == count_table(V, 2) == (27, 27)
    ids = np.random.default_rng(0).integers(V, size=50)
    assert ops.one_hot(ids, V).size == one_hot_numbers(50, V) == 27 * ids.size
    with pytest.raises(ConfigError, match="order is 0"):
        count_table(27, 0)


def test_a_step_has_three_times_the_products_of_a_forward_pass() -> None:
    """And attention five halves more than that, for the scores it computes again."""
    block = nn.TransformerBlock(8, 2, 20)
    x = normal(2, 5, 8)
    forward, backward = step_products(lambda: block(x).sum())
    assert backward["linear"] == 2 * forward["linear"]
    assert backward["attention"] == 5 * forward["attention"] // 2
