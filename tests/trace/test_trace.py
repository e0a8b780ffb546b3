"""Graphs: what a trace sees, which lengths it knows, and what comes of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native, nn, ops
from chainrule.autograd import Tensor
from chainrule.errors import GraphError
from chainrule.generate import Decoder
from chainrule.generate.engine.plan import Plan, decoder_graph
from chainrule.generate.session import WindowSession, session
from chainrule.models import GPT, GPTConfig, LanguageModel, Llama, make
from chainrule.nn.init import normal, parameter
from chainrule.scaling import Batch, flops, parameters, step_graph, total
from chainrule.trace import Given, NotStreamable, Value, picture, trace
from chainrule.trace.interpreter import Interpreter
from chainrule.trace.lengths import Size, Table, trace_lengths
from chainrule.trace.lower import lower
from chainrule.trace.terms import Unsupported

SIZE = GPTConfig(n_layer=2, n_head=2, n_embd=16, block_size=12, vocab_size=11)
IDS = np.random.default_rng(0).integers(11, size=12)


def model_of(kind: type[Any] = GPT, config: Any = SIZE) -> Any:
    cr.seed(0)
    model = kind(config)
    model.load({name: 3 * value for name, value in model.state().items()})
    return model.eval()


def uncached(model: Any, ids: np.ndarray) -> np.ndarray:
    with model.answering():
        return model(ids[None]).numpy()[0]  # type: ignore[no-any-return]


def decoded(model: Any, pieces: list[int], *, interpreted: bool) -> np.ndarray:
    """The logits after each piece."""
    with cr.backend("reference" if interpreted else "native"):
        decoder = Decoder(model)
        assert isinstance(decoder._engine, Interpreter) == interpreted
        ends = np.cumsum([0, *pieces])
        return np.concatenate([decoder.prefill(IDS[a:b]) for a, b in pairwise(ends)])


def check_decodes(model: Any, *, compiled: bool = True) -> None:
    pieces = [3, 1, 2, 1]
    want = uncached(model, IDS)[np.cumsum(pieces) - 1]
    np.testing.assert_allclose(decoded(model, pieces, interpreted=True), want, rtol=0, atol=1e-4)
    if compiled and native.available():
        np.testing.assert_allclose(decoded(model, pieces, interpreted=False), want, rtol=0, atol=1e-4)


def test_nodes_know_their_layer_inputs_and_parameters() -> None:
    model = model_of()
    graph = trace(model, ids=IDS[None])
    assert [node.name for node in graph.nodes[:5]] == [
        "wte.embedding", "wpe.embedding", "add", "h.0.ln_1.layernorm", "h.0.attn.c_attn.linear",
    ]  # fmt: skip
    assert graph.nodes[0].inputs == (model.wte.weight,) and graph.nodes[0].constants["ids"] == Given("ids")
    assert graph.nodes[2].inputs == (Value(0), Value(1)) and graph.nodes[2].shapes == ((1, 12, 16),)
    assert graph.outputs == (Value(len(graph.nodes) - 1),)
    assert {id(p) for p, _, _ in graph.parameters()} == {id(p) for _, p in model.named_parameters()}
    assert cr.autograd.mode.mode.trace is None


def test_nothing_is_computed_and_nothing_is_captured() -> None:
    model = GPT.abstract(GPTConfig(n_layer=96, n_head=96, n_embd=12288, block_size=2048, vocab_size=50257))
    with cr.capture() as seen:
        graph = trace(model, ids=np.zeros((1, 2048), int))
    assert graph.nodes[-1].shapes == ((1, 2048, 50257),) and not seen
    assert model.count() == 174_604_259_328


def test_what_is_a_length_and_what_a_table() -> None:
    graph = decoder_graph(model_of(Llama, cr.models.LlamaConfig(1, 2, 1, 16, 24, 12, 11)))
    shapes = [node.constants["shape"] for node in graph.nodes if node.op.name == "reshape"]
    assert shapes[:2] == [(1, Size("ids"), 2, 8), (1, Size("ids"), 1, 8)]
    turned = next(node for node in graph.nodes if node.op.name == "rotary").constants["positions"]
    assert isinstance(turned, Table) and turned.rows(3, 6).tolist() == [3, 4, 5]


class Counting(GPT):
    """Looks at how many tokens there are."""

    def forward(self, ids: Any) -> Any:
        return super().forward(ids) * float(ids.shape[1] % 3)


class Peeking(GPT):
    """Looks at its tokens."""

    def forward(self, ids: Any) -> Any:
        return super().forward(ids) * Tensor((np.asarray(ids) == 0).astype(np.float32)[..., None])


@pytest.mark.parametrize(
    ("kind", "message"), [(Counting, "depends on the number of ids"), (Peeking, "NumPy reads the numbers")]
)
def test_what_cannot_be_known_for_other_texts_is_refused(kind: type[Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        decoder_graph(model_of(kind))


def test_windows_are_not_read_token_by_token() -> None:
    for block_size in (8, 1):
        with pytest.raises(NotStreamable, match=rf"NumPy reads the numbers of an array \(1, {block_size}\)"):
            decoder_graph(make("mlp", vocab_size=11, block_size=block_size))


def test_a_model_that_reads_no_ids_has_no_cache() -> None:
    class Deaf(GPT):
        def forward(self, ids: Any) -> Any:
            return super().forward(np.zeros(ids.shape, int))

    with pytest.raises(NotStreamable, match="no embedding reads the ids"):
        decoder_graph(model_of(Deaf))


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_recurrent_models_decode_compiled(name: str) -> None:
    cr.seed(0)
    model = make(name, n_layer=2, n_embd=20, n_hidden=37, vocab_size=11, block_size=4)
    model.load({k: v + 0.3 * np.random.default_rng(1).normal(size=v.shape) for k, v in model.state().items()})
    check_decodes(model)  # also beyond 4 tokens
    if native.available():
        for weights, loss in (("bf16", 0.05), ("int8", 0.2)):
            exact, rounded = (Decoder(model, w).prefill(IDS) for w in ("fp32", weights))
            assert 0 < np.abs(exact - rounded).max() < loss * np.abs(exact).max()


def test_resetting_after_the_product() -> None:
    cr.seed(0)
    model = make("gru", n_layer=1, n_embd=8, n_hidden=9, vocab_size=11)
    model.cells.layers[0] = nn.GRU(8, 9, reset_after=True)
    model.cells.layers[0].bias_h.data += 0.5
    check_decodes(model)


class BothWays(LanguageModel):
    """Attention to what comes later too."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.block = nn.TransformerBlock(config.n_embd, 2)
        self.head = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, ids: Any) -> Any:
        return self.head(self.block(self.wte(ids)))


class Averaging(BothWays):
    """Every token sees the mean of all."""

    def forward(self, ids: Any) -> Any:
        hidden = self.wte(ids)
        return self.head(hidden + hidden.mean(axis=1, keepdims=True))


@pytest.mark.parametrize(("kind", "op"), [(BothWays, "block.attn.attention"), (Averaging, "mean")])
def test_what_sees_later_tokens_has_no_cache(kind: type[Any], op: str) -> None:
    model = model_of(kind)
    with pytest.raises(GraphError, match=f"{op} does not read token by token"):
        decoder_graph(model)
    texts = session(model)
    assert isinstance(texts, WindowSession)
    texts.read([IDS[:3].tolist()])
    np.testing.assert_allclose(texts.read([IDS[3:5].tolist()])[0], uncached(model, IDS[:5])[-1], atol=1e-5)


class WithPrefix(LanguageModel):
    """One attention whose first keys and values are parameters."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        C = config.n_embd
        self.wte = nn.Embedding(config.vocab_size, C)
        self.q, self.k, self.v = (nn.Linear(C, C) for _ in range(3))
        self.prefix_k, self.prefix_v = (parameter(normal, (1, 1, 3, C)) for _ in range(2))
        self.head = nn.Linear(C, config.vocab_size)

    def forward(self, ids: Any) -> Any:
        hidden = self.wte(ids)
        B, T, C = hidden.shape
        q, k, v = (f(hidden).reshape(B, T, 1, C).transpose(0, 2, 1, 3) for f in (self.q, self.k, self.v))
        k, v = ops.concat(self.prefix_k, k, axis=2), ops.concat(self.prefix_v, v, axis=2)
        mixed = ops.attention(q, k, v, causal=True).transpose(0, 2, 1, 3).reshape(B, T, C)
        return self.head(hidden + mixed)


def test_a_prefix_is_in_the_cache_once() -> None:
    check_decodes(model_of(WithPrefix))


class TwoPrefixes(WithPrefix):
    """Two parts stand before the keys, and two before the values."""

    def forward(self, ids: Any) -> Any:
        hidden = self.wte(ids)
        B, T, C = hidden.shape
        q, k, v = (f(hidden).reshape(B, T, 1, C).transpose(0, 2, 1, 3) for f in (self.q, self.k, self.v))
        k = ops.concat(self.prefix_k, self.prefix_v, k, axis=2)
        v = ops.concat(self.prefix_v, self.prefix_k, v, axis=2)
        mixed = ops.attention(q, k, v, causal=True).transpose(0, 2, 1, 3).reshape(B, T, C)
        return self.head(hidden + mixed)


class WithLateRows(WithPrefix):
    """Rows before those of the second layer, not of the embedding."""

    def forward(self, ids: Any) -> Any:
        hidden = ops.concat(self.prefix_k.reshape(1, 3, -1), self.q(self.wte(ids)), axis=1)
        return self.head(self.k(hidden)[:, 3:])


def test_several_parts_make_up_a_prefix() -> None:
    check_decodes(model_of(TwoPrefixes))


def test_rows_before_something_else_than_embeddings_are_interpreted() -> None:
    model = model_of(WithLateRows)
    with pytest.raises(Unsupported, match="concat joins something else than a prefix"):
        lower(decoder_graph(model))
    assert isinstance(Decoder(model)._engine, Interpreter)  # the interpreter runs anything
    check_decodes(model, compiled=False)


class Shortened(GPT):
    """Leaves out the first token."""

    def forward(self, ids: Any) -> Any:
        return super().forward(ids)[:, 1:]


class Late(WithPrefix):
    """Answers with the rows of the prefix too: the rows of the last tokens are left out."""

    def forward(self, ids: Any) -> Any:
        hidden = ops.concat(self.prefix_k.reshape(1, 3, -1), self.wte(ids), axis=1)
        return self.head(hidden[:, :-3])


@pytest.mark.parametrize("kind", [Shortened, Late])
def test_tokens_that_are_left_out_have_no_cache(kind: Any) -> None:
    with pytest.raises(NotStreamable, match="getitem does not read token by token"):
        decoder_graph(model_of(kind))


class WithValue(GPT):
    """A number per position instead of logits, as a critic gives."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.value = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, ids: Any) -> Any:
        return self.value(self.hidden(ids))


def test_another_head() -> None:
    check_decodes(model_of(WithValue))


def test_lora_counts_what_it_adds_and_needs_no_gradient_of_its_base() -> None:
    model, batch = model_of().train(), Batch(2, 8)
    before, plain = parameters(model), total(flops(model, batch))
    for block in model.h:
        block.attn.c_attn = nn.LoRALinear(block.attn.c_attn, 2)
    added = 2 * 2 * (16 + 48)
    assert parameters(model)["attention"] == before["attention"] + added
    after = total(flops(model, batch))
    assert after.forward - plain.forward == 2 * 16 * added
    frozen = 2 * 16 * 2 * 16 * 48  # the gradients of both matrices
    assert after.backward - plain.backward == 2 * 2 * 16 * added - frozen


def test_a_picture_is_plain_data() -> None:
    graph = step_graph(GPT.abstract(SIZE), Batch(1, 8))
    found = picture(graph)
    assert sum(node["parameters"] for node in found["nodes"]) == SIZE.n_params
    assert (
        sum(node["flops"] for node in found["nodes"]) == total(flops(GPT.abstract(SIZE), Batch(1, 8))).forward
    )
    known = {"input0", *range(len(graph.nodes))}
    assert found["edges"] and all(a in known and b in known for a, b in found["edges"])
    layers = [n["layer"] for n in found["nodes"] if n["component"] == "mlp" and n["op"] == "linear"]
    assert layers == ["h.0.mlp.c_fc", "h.0.mlp.c_proj", "h.1.mlp.c_fc", "h.1.mlp.c_proj"]


def test_one_plan_serves_many_engines() -> None:
    plan = Plan(model_of())
    first, second = (plan.open(1) for _ in range(2))
    logits = np.empty((2, 11), np.float32)
    for engine, row, ids in ((first, 0, IDS[:3]), (second, 1, IDS[4:7])):
        engine.run(logits[row : row + 1], ids.astype(np.int32), np.array([0]), np.array([3]), np.array([0]))
    want = [uncached(model_of(), ids)[-1] for ids in (IDS[:3], IDS[4:7])]
    np.testing.assert_allclose(logits, want, rtol=0, atol=1e-4)


def test_two_lengths_must_call_the_same_ops() -> None:
    def made(ids: int) -> Any:
        return trace(lambda x: x.exp() if ids > 3 else x * x, x=Tensor(np.zeros((1, ids))))

    with pytest.raises(GraphError, match="other ops are called when ids is 3"):
        trace_lengths(made, ids=4)
