"""The decoder of `Seq2Seq` over new tokens with a cache, as a list of instructions (`nn.program`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from chainrule.autograd import Tensor, no_grad
from chainrule.nn import Embedding, LayerNorm, MultiHeadAttention
from chainrule.nn.program import Attend, Embed, Head, Instruction, Last, Look, Norm, Project

if TYPE_CHECKING:
    from chainrule.models.seq2seq import DecoderLayer, Seq2Seq, Stack


def program_of(model: Seq2Seq) -> list[Instruction | Look]:
    """From tokens and what the encoder made of their sources to logits"""
    decoder: Stack = model.model["decoder"]
    layers = cast("list[DecoderLayer]", decoder.layers)
    end: list[Instruction | Look] = [Last("last", "hidden")]
    if decoder.layer_norm is not None:
        end.append(Norm("last", "last", decoder.layer_norm))
    return [
        embedded(decoder, model.table("decoder")),
        *(step for layer in layers for step in of_layer(layer, model.config.activation)),
        *end,
        Head("last", model.head, model.final_logits_bias),
    ]


def embedded(decoder: Stack, table: Embedding) -> Embed:
    zeros = Tensor(np.zeros((decoder.limit, table.weight.shape[1]), table.weight.dtype))
    with no_grad():
        places = decoder.embed_positions(zeros).numpy()  # what positions add
    return Embed("hidden", table, places, decoder.scale)


def of_layer(layer: DecoderLayer, activation: str) -> list[Instruction | Look]:
    """From register "hidden" to "hidden"; with post-norm a sublayer reads that too."""
    x = "normed" if layer.pre else "hidden"
    own, source = layer.self_attn, layer.encoder_attn
    sublayers: list[tuple[LayerNorm, list[Instruction | Look]]] = [
        (
            layer.self_attn_layer_norm,
            [
                Project("qkv", x, (own.q_proj, own.k_proj, own.v_proj)),
                Attend("mixed", "qkv", own.heads, own.heads),
                joined(own),
            ],
        ),
        (
            layer.encoder_attn_layer_norm,
            [
                Project("q", x, (source.q_proj,)),
                Look("mixed", "q", source.heads, (source.k_proj, source.v_proj)),
                joined(source),
            ],
        ),
        (
            layer.final_layer_norm,
            [
                Project("inside", x, (layer.fc1,), activation=activation),
                Project("hidden", "inside", (layer.fc2,), add=True),
            ],
        ),
    ]
    if layer.pre:
        return [step for norm, steps in sublayers for step in (Norm(x, "hidden", norm), *steps)]
    return [step for norm, steps in sublayers for step in (*steps, Norm(x, x, norm))]


def joined(layer: MultiHeadAttention) -> Project:
    """The heads, put together and added to the residual stream"""
    return Project("hidden", "mixed", (layer.out_proj,), add=True)  # type: ignore[arg-type]  # it has one
