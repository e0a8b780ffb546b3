"""Programs keep the order of axes, rotations and widths, or there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule import native, nn, ops
from chainrule.autograd import Tensor
from chainrule.generate import Decoder
from chainrule.generate.engine.plan import decoder_graph
from chainrule.models import GPTConfig, LlamaConfig, NeoXConfig, model_class
from chainrule.trace.interpreter import Interpreter
from chainrule.trace.lower import lower
from chainrule.trace.terms import Unsupported
from tests.trace.test_interpreter import Small
from tests.trace.test_lengths import heads
from tests.trace.test_trace import check_decodes, model_of


def turned(x: Tensor) -> Tensor:
    return ops.rotary(x, positions=np.arange(x.shape[-2]))


def joined(x: Tensor) -> Tensor:
    B, H, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * D)


class TurnedAndJoined(Small):
    """Rotated, without attention."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return joined(turned(heads(self.layer(hidden))))


class TurnedTwice(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        q = turned(turned(heads(self.layer(hidden))))
        return joined(ops.attention(q, q, turned(heads(hidden)), causal=True))


class OneHead(Small):
    """Joined without being transposed back, which is right with one head alone."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        B, T, C = hidden.shape
        q = self.layer(hidden).reshape(B, T, 1, C).transpose(0, 2, 1, 3)
        return ops.attention(q, q, q, causal=True).reshape(B, T, C)


class Narrow(Small):
    """A sum of widths 16 and 1."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.one = nn.Linear(config.n_embd, 1)

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return self.layer(hidden) + self.one(hidden)


class TwoEmbeddings(Small):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.second = nn.Embedding(config.vocab_size, config.n_embd)

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        q = heads(self.layer(hidden + self.second(ids)))
        return joined(ops.attention(q, q, q, causal=True))


class Added(Small):
    """An array that is no parameter."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return self.layer(hidden) + np.ones(16, np.float32)


class FewValues(Small):
    """Heads of the embedding itself, and fewer of keys than of values."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.k = nn.Linear(config.n_embd, 8)

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        B, T, _ = hidden.shape
        k = self.k(hidden).reshape(B, T, 1, 8).transpose(0, 2, 1, 3)
        return joined(ops.attention(heads(hidden), k, k, causal=True))


KINDS = [
    TurnedAndJoined, TurnedTwice, OneHead, Narrow, TwoEmbeddings, Added, FewValues,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_instruction_is_interpreted(kind: type[Any]) -> None:
    check_interpreted(kind)


def check_interpreted(kind: type[Any]) -> None:
    model = model_of(kind)
    with pytest.raises(Unsupported):
        lower(decoder_graph(model))
    assert isinstance(Decoder(model)._engine, Interpreter)
    check_decodes(model, compiled=False)


class Turned(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        q, k, v = (heads(f(hidden)) for f in (self.layer, self.layer, self.layer))
        return joined(ops.attention(turned(q), turned(k), v, causal=True))


class ScaledTable(Small):
    def forward(self, ids: Any) -> Any:
        return self.head(self.layer(ops.embedding(self.wte.weight * 2.0, ids=ids)))


@pytest.mark.parametrize("kind", [Turned, ScaledTable])
def test_what_has_instructions_is_compiled(kind: type[Any]) -> None:
    check_decodes(model_of(kind))


VARIANTS = [
    LlamaConfig(2, 4, 2, 24, 20, 12, 11, variant="qwen3"),
    LlamaConfig(2, 4, 2, 24, 20, 12, 11, head_dim=8, variant="gemma"),
    LlamaConfig(4, 4, 2, 24, 20, 12, 11, variant="smollm3", tied=False),
    LlamaConfig(2, 4, 2, 24, 20, 12, 11, variant="phi3", attention_bias="qkv"),
    NeoXConfig(2, 3, 24, 12, 11, rotary=0.5),
    NeoXConfig(2, 3, 24, 12, 11, rotary=0.0, parallel=False, activation="relu"),
    GPTConfig(2, 3, 24, 12, 11, activation="relu"),
]


@pytest.mark.parametrize(
    "config", VARIANTS, ids=lambda config: getattr(config, "variant", type(config).__name__)
)
def test_every_variant_is_compiled(config: Any) -> None:
    check_decodes(model_of(model_class(config), config))


class NormalizedUnlike(Small):
    """Keys are normalized, queries are not."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.norm = nn.RMSNorm(8)

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        q = heads(self.layer(hidden))
        return joined(ops.attention(q, self.norm(q), q, causal=True))


class NormalizedAndJoined(NormalizedUnlike):
    """Normalized, without attention."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return joined(self.norm(heads(self.layer(hidden))))


class TurnedThenNormalized(NormalizedUnlike):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        q = self.norm(turned(heads(self.layer(hidden))))
        return joined(ops.attention(q, q, heads(self.layer(hidden)), causal=True))


class GatedByItself(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return self.layer(hidden) * 0.01 * hidden


@pytest.mark.parametrize("kind", [NormalizedUnlike, NormalizedAndJoined, TurnedThenNormalized, GatedByItself])
def test_other_norms_and_gates_are_interpreted(kind: type[Any]) -> None:
    check_interpreted(kind)


@pytest.mark.skipif(not native.available(), reason="needs the extension")
def test_a_program_without_a_source_reads_none() -> None:
    program = native.kernels().Program(1, 8)
    with pytest.raises(ValueError, match="attends to no source"):
        program.read(np.zeros((0, 0), np.float32), np.zeros(0, np.int64))
