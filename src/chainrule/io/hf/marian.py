"""Seq2Seq as Hugging Face's `MarianMTModel`, `PegasusForConditionalGeneration` or `BartForConditionalGeneration`.

    Marian       norm="post", sinusoidal positions
    Pegasus      norm="pre", sinusoidal positions
    BART         norm="post", learned positions, a norm of the embeddings

All have the same names as ours, biases in attention and ε = 1e-5 in every norm. BART counts positions from 2: rows 0
and 1 of its tables are never read. A model of another mixture, another ε, or two vocabularies where there is one, is
stored in our own form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.errors import FormatError
from chainrule.io.hf.weights import with_zero_biases, without_copies, without_rows, without_zero_biases
from chainrule.io.safetensors import Arrays
from chainrule.io.settings import Settings
from chainrule.models import Model, Seq2Seq, Seq2SeqConfig
from chainrule.models.seq2seq.encoder_decoder import STARTS
from chainrule.nn.positions import sinusoidal

MODELS: dict[type[Any], type[Model]] = {Seq2SeqConfig: Seq2Seq}
CLASSES = {
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
}
NAMES = tuple(CLASSES)
KINDS: dict[str, dict[str, Any]] = {
    "marian": {"norm": "post", "positions": "sinusoidal", "embedding_norm": False},
    "pegasus": {"norm": "pre", "positions": "sinusoidal", "embedding_norm": False},
    "bart": {"norm": "post", "positions": "learned", "embedding_norm": True},
}
FIRST_POSITION = 2  # of BART
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "silu": "silu", "swish": "silu"}
EPS = 1e-5
HEAD, SHARED = "lm_head.weight", "model.shared.weight"
TABLES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")


def read_config(settings: Settings) -> Seq2SeqConfig:
    """Our config from a `config.json`; options that Seq2Seq lacks are refused."""
    layers, heads = settings.integer("encoder_layers"), settings.integer("encoder_attention_heads")
    width, inside = settings.integer("d_model"), settings.integer("encoder_ffn_dim")
    settings.must("decoder_layers", layers)
    settings.must("decoder_attention_heads", heads)
    settings.must("decoder_ffn_dim", inside)
    kind = KINDS[settings.values["model_type"]]
    settings.must("normalize_embedding", kind["embedding_norm"])
    settings.must("normalize_before", kind["norm"] == "pre")
    settings.must("add_final_layer_norm", kind["norm"] == "pre")
    settings.must("static_position_embeddings", kind["positions"] == "sinusoidal")
    _check_class(settings)
    ours = settings.section("chainrule")
    rows = settings.integer("vocab_size")
    tied = settings.flag("tie_word_embeddings", True)
    shared = settings.flag("share_encoder_decoder_embeddings", True) and ours.flag("shared", tied)
    return Seq2SeqConfig(
        n_layer=layers,
        n_head=heads,
        n_embd=width,
        n_hidden=None if inside == 4 * width else inside,
        block_size=settings.integer("max_position_embeddings", default=1024),
        vocab_size=rows if shared else settings.integer("decoder_vocab_size", default=rows),
        source_vocab_size=None if shared else rows,
        norm_eps=EPS,
        activation=settings.choice("activation_function", ACTIVATIONS, "gelu"),
        bias=ours.flag("bias", True),
        tied=tied,
        scale_embedding=settings.flag("scale_embedding", False),
        dropout=settings.number("dropout", default=0.1),
        label_smoothing=ours.number("label_smoothing", default=0.0),
        scheduled_sampling=ours.number("scheduled_sampling", default=0.0),
        target_start=start_of(settings),
        **kind,
    )


def start_of(settings: Settings) -> str:
    """What a target begins with: as our section says, else by the ids of special tokens."""
    ours = settings.section("chainrule")
    if ours.values:
        return ours.choice("target_start", {name: name for name in STARTS}, "bos")
    start = settings.values.get("decoder_start_token_id")
    for role in ("pad", "eos"):
        if start is not None and start == settings.values.get(f"{role}_token_id"):
            return role
    return "bos"


def _check_class(settings: Settings) -> None:
    """Refuse the weights of another head."""
    named = settings.values.get("architectures")
    wanted = CLASSES[settings.values["model_type"]]
    if named and named != [wanted]:
        raise FormatError(f"architectures is {named!r} (is not supported, must be {wanted})")


def write_config(config: Seq2SeqConfig) -> dict[str, Any] | None:
    """The content of `config.json`; None if Hugging Face lacks the model."""
    shared = config.source_vocab_size is None
    same = (name for name, fields in KINDS.items() if all(getattr(config, f) == x for f, x in fields.items()))
    kind = next(same, None)
    if kind is None or config.norm_eps != EPS or (kind != "marian" and not shared):
        return None
    sizes = {"layers": config.n_layer, "attention_heads": config.n_head, "ffn_dim": config.inside}
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}
    return {
        "model_type": kind,
        "architectures": [CLASSES[kind]],
        **sides,
        "d_model": config.n_embd,
        "max_position_embeddings": config.block_size,
        "vocab_size": config.vocab_size if shared else config.source_vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": config.tied,
        "scale_embedding": config.scale_embedding,
        "activation_function": "gelu_new" if config.activation == "gelu_tanh" else config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.dropout,
        "activation_dropout": config.dropout,
        "forced_eos_token_id": None,
        "chainrule": {
            "bias": config.bias,
            "shared": shared,
            "label_smoothing": config.label_smoothing,
            "scheduled_sampling": config.scheduled_sampling,
            "target_start": config.target_start,
        },
    }


def read_weights(tensors: Arrays, config: Seq2SeqConfig) -> Arrays:
    """Arrays by our names, from Hugging Face's."""
    found = dict(tensors)
    for name in POSITIONS:
        if config.positions == "sinusoidal":
            _check_positions(name, found.pop(name, None), config)
        elif name in found:
            found[name] = without_rows(name, found[name], FIRST_POSITION)
    shared = config.source_vocab_size is None
    copies = dict.fromkeys(TABLES, SHARED) if shared else {}
    if config.tied:
        copies[HEAD] = SHARED if shared else TABLES[1]
    found = without_copies(found, copies)
    if not shared:
        found.pop(SHARED, None)  # stored, but used by neither side
    return found if config.bias else without_zero_biases(found, *(f".{name}.bias" for name in ATTENTION))


def write_weights(state: Arrays, config: Seq2SeqConfig) -> Arrays:
    """Arrays by Hugging Face's names, from ours."""
    found = dict(state)
    if not config.bias:
        found = with_zero_biases(found, *(f".{name}.weight" for name in ATTENTION))
    if config.positions == "learned":
        unused = np.zeros((FIRST_POSITION, config.n_embd), np.float32)
        found |= {name: np.concatenate([unused, found[name]]) for name in POSITIONS}
    elif config.norm == "pre":  # Pegasus stores them
        table = sinusoidal(config.block_size, config.n_embd, layout="half").astype(np.float32)
        found |= dict.fromkeys(POSITIONS, table)
    if config.source_vocab_size is None and not config.tied:  # otherwise transformers unties them
        found |= dict.fromkeys(TABLES, found[SHARED])
    return found


def _check_positions(name: str, table: Any, config: Seq2SeqConfig) -> None:
    """Stored positions must equal the sines and cosines."""
    if table is None:
        return
    want = (config.block_size, config.n_embd)
    if table.shape != want or np.abs(table - sinusoidal(*want, layout="half")).max() > 1e-2:
        raise FormatError(f"{name} is not sinusoidal (is not supported, must be sines, then cosines)")
