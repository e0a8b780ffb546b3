"""Models as lists of parts: what their configurations stand for, without making them.

R-450, R-453, R-454 (seed 004 §12.1, §12.3, §12.6 .. §12.8; E-004-31)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.errors import ConfigError
from chainrule.models import GPTConfig, LlamaConfig
from chainrule.scaling.parts import (
    ROWS,
    SOURCE,
    TOKENS,
    Activate,
    Angles,
    Attend,
    Head,
    Matrix,
    Norm,
    Part,
    Table,
)

Parts = list[Part]


def gpt(config: GPTConfig) -> Parts:
    """models/gpt.py"""
    C, H, bias = config.n_embd, config.n_head, config.bias
    block: Parts = [
        Norm(C, bias),
        Matrix("qkv", "attention", C, 3 * C, bias),
        Attend(H, C // H, H),
        Matrix("output", "attention", C, C, bias),
        Norm(C, bias),
        Matrix("up", "mlp", C, 4 * C, bias),
        Activate("gelu", 4 * C, dropout=config.dropout > 0),
        Matrix("down", "mlp", 4 * C, C, bias),
    ]
    tables: Parts = [Table(config.vocab_size, C), Table(config.block_size, C, by_token=False)]
    return [*tables, *(config.n_layer * block), Norm(C, bias), Head(C, config.vocab_size)]


def llama(config: LlamaConfig) -> Parts:
    """models/llama.py"""
    C, H, kv, inside = config.n_embd, config.n_head, config.n_kv_head, config.n_hidden
    D = C // H
    norm = Norm(C, bias=False, rms=True)
    block: Parts = [
        norm,
        *(Matrix(name, "attention", C, heads * D, False) for name, heads in _roles(H, kv)),
        Attend(H, D, kv),
        Matrix("output", "attention", C, C, False),
        norm,
        Matrix("gate", "mlp", C, inside, False),
        Matrix("up", "mlp", C, inside, False),
        Activate("swiglu", inside),
        Matrix("down", "mlp", inside, C, False),
    ]
    table, head = Table(config.vocab_size, C), Head(C, config.vocab_size, config.tied)
    return [table, Angles(D), *(config.n_layer * block), norm, head]


def encoder_decoder(
    vocab_size: int = 50_000,
    width: int = 512,
    heads: int = 8,
    hidden: int = 2048,
    layers: int = 6,
    *,
    source_vocab_size: int | None = None,
    places: int = 0,
    tied: bool = False,
    head_bias: bool = True,
    mlp_bias: bool = True,
    attention_bias: bool = False,
    final_norm: bool = False,
) -> Parts:
    """The transformer of the paper, by default in the size and the reading of seed 004 §12.

    Source and target share an embedding, unless the source has a vocabulary of its own; `tied` if the head shares it
    too; `places` rows of learned positions on each side. §12.8 leaves out the biases of the MLP; a pre-norm stack ends
    in one more norm on each side.
    """

    def self_attention(over: str) -> Parts:
        return _attention(width, heads, attention_bias, over, over, causal=over == TOKENS)

    mlp = {over: _mlp(width, hidden, mlp_bias, "relu", over) for over in (SOURCE, TOKENS)}
    cross = _attention(width, heads, attention_bias, TOKENS, SOURCE, causal=False)
    encoder = [*self_attention(SOURCE), *mlp[SOURCE]]
    decoder = [*self_attention(TOKENS), *cross, *mlp[TOKENS]]
    ends: Parts = [Norm(width, over=over) for over in (SOURCE, TOKENS)] if final_norm else []
    vocabularies = [vocab_size] if source_vocab_size is None else [source_vocab_size, vocab_size]
    embeddings: Parts = [Table(rows, width) for rows in vocabularies]
    embeddings += 2 * [Table(places, width, by_token=False)]
    return [
        *embeddings,
        *(layers * encoder),
        *(layers * decoder),
        *ends,
        Head(width, vocab_size, tied, head_bias),
    ]


def bert(
    vocab_size: int = 30_522,
    width: int = 768,
    heads: int = 12,
    hidden: int = 3072,
    layers: int = 12,
    *,
    positions: int = 512,
    segments: int = 2,
    pretraining: bool = True,
) -> Parts:
    """BERT with its pooler, by default in the base size; `pretraining` adds the heads for masked words and next
    sentence."""
    block = [
        *_attention(width, heads, True, TOKENS, TOKENS, causal=False),
        *_mlp(width, hidden, True, "gelu", TOKENS),
    ]
    places: Parts = [Table(rows, width, by_token=False) for rows in (positions, segments)]
    pooler = Matrix("pooler", "head", width, width, over=ROWS)
    body = [Table(vocab_size, width), *places, Norm(width), *(layers * block), pooler]
    if not pretraining:
        return body
    masked_words: Parts = [
        Matrix("transform", "head", width, width),
        Norm(width),
        Head(width, vocab_size, bias=True),
    ]
    return [*body, *masked_words, Matrix("next sentence", "head", width, 2, over=ROWS)]


def _attention(width: int, heads: int, bias: bool, over: str, keys: str, *, causal: bool) -> Parts:
    """Four matrices, attention and a norm; keys and values come from the positions `keys`."""
    return [
        Matrix("query", "attention", width, width, bias, over),
        Matrix("key", "attention", width, width, bias, keys),
        Matrix("value", "attention", width, width, bias, keys),
        Attend(heads, width // heads, heads, causal, over, keys),
        Matrix("output", "attention", width, width, bias, over),
        Norm(width, over=over),
    ]


def _mlp(width: int, hidden: int, bias: bool, activation: str, over: str) -> Parts:
    return [
        Matrix("up", "mlp", width, hidden, bias, over),
        Activate(activation, hidden, over=over),
        Matrix("down", "mlp", hidden, width, bias, over),
        Norm(width, over=over),
    ]


def _roles(heads: int, kv_heads: int) -> tuple[tuple[str, int], ...]:
    return ("query", heads), ("key", kv_heads), ("value", kv_heads)


BUILDERS: dict[type[Any], Callable[[Any], Parts]] = {GPTConfig: gpt, LlamaConfig: llama}


def parts_of(config: Any) -> Parts:
    """The parts of the model that a configuration stands for.

    >>> import chainrule as cr
    >>> from chainrule import scaling
    >>> gpt2 = cr.models.GPTConfig(n_layer=12, n_head=12, n_embd=768, block_size=1024, vocab_size=50257)
    >>> sum(scaling.parameters(scaling.parts_of(gpt2)).values())
    124439808
    """
    if type(config) not in BUILDERS:
        known = ", ".join(kind.__name__ for kind in BUILDERS)
        raise ConfigError(f"count: {type(config).__name__} has no list of parts (must be one of {known})")
    return BUILDERS[type(config)](config)
