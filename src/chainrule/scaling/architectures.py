"""Models as lists of parts: what their configurations stand for, without making them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from chainrule.errors import ConfigError
from chainrule.models import BERTConfig, BERTPretrainingConfig, GPTConfig, LlamaConfig, Seq2SeqConfig
from chainrule.scaling.batch import MASKED, ROWS, SOURCE, TOKENS
from chainrule.scaling.parts import (
    Activate,
    Angles,
    Attend,
    Head,
    Keep,
    Matrix,
    Norm,
    Part,
    Scores,
    Table,
)

Parts = list[Part]


def gpt(config: GPTConfig) -> Parts:
    """models/gpt.py"""
    C, H, inside, bias = config.n_embd, config.n_head, config.inside, config.bias
    block: Parts = [
        Norm(C, bias),
        Matrix("qkv", "attention", C, 3 * C, bias),
        Attend(H, C // H, H),
        Matrix("output", "attention", C, C, bias),
        Norm(C, bias),
        Matrix("up", "mlp", C, inside, bias),
        Activate("gelu", inside, dropout=config.dropout > 0),
        Matrix("down", "mlp", inside, C, bias),
    ]
    tables: Parts = [Table(config.vocab_size, C), Table(config.block_size, C, by_token=False)]
    return [*tables, *(config.n_layer * block), Norm(C, bias), Head(C, config.vocab_size, config.tied)]


def llama(config: LlamaConfig) -> Parts:
    """models/llama.py"""
    C, H, kv, inside = config.n_embd, config.n_head, config.n_kv_head, config.n_hidden
    D, (inner, outer) = config.head_size, config.biases
    norm = Norm(C, bias=False, rms=True)
    block: Parts = [
        norm,
        *(Matrix(name, "attention", C, heads * D, inner) for name, heads in _roles(H, kv)),
        Attend(H, D, kv),
        Matrix("output", "attention", H * D, C, outer),
        norm,
        Matrix("gate", "mlp", C, inside, False),
        Matrix("up", "mlp", C, inside, False),
        Activate("swiglu", inside),
        Matrix("down", "mlp", inside, C, False),
    ]
    table, head = Table(config.vocab_size, C), Head(C, config.vocab_size, config.tied)
    return [table, Angles(D), *(config.n_layer * block), norm, head]


def seq2seq(config: Seq2SeqConfig) -> Parts:
    """models/seq2seq.py"""
    C = config.n_embd
    vocabularies = [config.vocab_size]
    if config.source_vocab_size is not None:
        vocabularies.append(config.source_vocab_size)
    places = config.block_size if config.positions == "learned" else 0
    tables: Parts = [Table(rows, C) for rows in vocabularies]
    tables += 2 * [Table(places, C, by_token=False)]
    *encoder, last = _stack(config, SOURCE, [SOURCE])
    memory: Parts = [
        _unread(last),
        Keep("attention", C, over=SOURCE),
    ]  # read through views, so never computed again
    *decoder, last = _stack(config, TOKENS, [TOKENS, SOURCE])
    head = Head(C, config.vocab_size, config.tied, bias=True)
    return [*tables, *encoder, *memory, *decoder, _unread(last), head]


def _stack(config: Seq2SeqConfig, over: str, keys: Sequence[str]) -> Parts:
    """Embeddings and blocks: attention to each of `keys`, then the MLP, each with a norm."""
    C, pre, dropped = config.n_embd, config.norm == "pre", config.dropout > 0
    norm: Part = Norm(C, over=over)

    def sublayer(of: str, parts: Parts) -> Parts:
        added = [*parts, *_masks(of, C, over, dropped)]
        return [norm, *added] if pre else [*added, norm]

    mlp: Parts = [
        Matrix("up", "mlp", C, config.inside, over=over),
        Activate(config.activation, config.inside, dropped, over),
        Matrix("down", "mlp", config.inside, C, over=over),
    ]
    attentions = (_attention(C, config.n_head, config.bias, over, of, causal=of == TOKENS) for of in keys)
    block = [part for a in attentions for part in sublayer("attention", a)] + sublayer("mlp", mlp)
    # What a scaling of the embeddings reads, and what the first matrices read if no norm comes before them.
    embedded = (config.scale_embedding + (not pre)) * [Keep("embedding", C, over=over)]
    ends = [norm] if pre else []
    return [*_masks("embedding", C, over, dropped), *embedded, *(config.n_layer * block), *ends]


def bert(config: BERTConfig) -> Parts:
    """models/bert.py: the body with its pooler, or with the heads for masked words and next sentence"""
    C, inside, dropped = config.n_embd, config.n_hidden, config.dropout > 0
    block: Parts = [
        *_attention(C, config.n_head, True, TOKENS, TOKENS, causal=False),
        *_masks("attention", C, TOKENS, dropped),
        Norm(C),
        Matrix("up", "mlp", C, inside),
        Activate("gelu", inside),
        Matrix("down", "mlp", inside, C),
        *_masks("mlp", C, TOKENS, dropped),
        Norm(C),
    ]
    body: Parts = [
        Table(config.vocab_size, C),
        Table(config.block_size, C, by_token=False),
        Table(config.n_segments, C, by_token=False),
        Norm(C, read=not dropped),
        *_masks("embedding", C, TOKENS, dropped),
        *([Keep("embedding", C)] if dropped else []),
        *(config.n_layer * block),
    ]
    body[-1] = _unread(body[-1])  # the heads gather the rows they need
    pooler: Parts = [Keep("head", 2 * C, over=ROWS), Matrix("pooler", "head", C, C, over=ROWS)]
    if not isinstance(config, BERTPretrainingConfig):
        return [*body, *pooler]
    words: Parts = [
        Keep("head", C, over=MASKED),  # the rows that are gathered
        Matrix("transform", "head", C, C, over=MASKED),
        Activate("gelu", C, over=MASKED),
        Norm(C, over=MASKED, stream=False),
        Scores(C, config.vocab_size, bias=True, over=MASKED),
    ]
    pairs = [*pooler, Scores(C, 2, tied=False, bias=True, over=ROWS)] if config.next_sentence else []
    return [*body, *words, *pairs]


def _attention(width: int, heads: int, bias: bool, over: str, keys: str, *, causal: bool) -> Parts:
    """Four matrices and attention; keys and values come from the positions `keys`."""
    return [
        Matrix("query", "attention", width, width, bias, over),
        Matrix("key", "attention", width, width, bias, keys),
        Matrix("value", "attention", width, width, bias, keys),
        Attend(heads, width // heads, heads, causal, over, keys),
        Matrix("output", "attention", width, width, bias, over),
    ]


def _masks(of: str, width: int, over: str, dropped: bool) -> Parts:
    """A byte for each number that dropout may set to 0."""
    return [Keep(of, width, itemsize=1, over=over)] if dropped else []


def _unread(norm: Any) -> Part:
    """The norm at the end of a stack, whose output no matrix reads as it is."""
    unread: Part = replace(norm, read=False)
    return unread


def without_biases(parts: Parts, *components: str) -> Parts:
    """The same model without the biases of some components, as textbooks count."""
    return [
        replace(part, bias=False)
        if isinstance(part, Matrix | Head) and part.component in components
        else part
        for part in parts
    ]


def _roles(heads: int, kv_heads: int) -> tuple[tuple[str, int], ...]:
    return ("query", heads), ("key", kv_heads), ("value", kv_heads)


BUILDERS: dict[type[Any], Callable[[Any], Parts]] = {
    GPTConfig: gpt,
    LlamaConfig: llama,
    Seq2SeqConfig: seq2seq,
    BERTConfig: bert,
    BERTPretrainingConfig: bert,
}


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
