"""Layers: parameters and calls to ops, one file per kind.

`layer` is the base class, `init` draws new parameters, `adapters` has LoRA, adapters, prefixes, soft
prompts and rows of tokens, `positions` and `rope_scaling` the position encodings.
"""

from chainrule import lazy
from chainrule.autograd import Param
from chainrule.nn import init
from chainrule.nn.activation import PReLU, activation
from chainrule.nn.adapters import (
    Adapted,
    Adapter,
    KeyValuePrefix,
    LoRALinear,
    PackedLoRALinear,
    SoftPrompt,
    TokenRows,
)
from chainrule.nn.attention import MultiHeadAttention, TransformerBlock
from chainrule.nn.containers import ModuleList, Sequential
from chainrule.nn.dropout import Dropout
from chainrule.nn.embedding import Embedding
from chainrule.nn.layer import Layer, Module
from chainrule.nn.linear import Linear
from chainrule.nn.mlp import MLP, FeedForward, GatedFeedForward
from chainrule.nn.norm import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from chainrule.nn.positions import (
    DistanceBias,
    LearnedPositions,
    SinusoidalPositions,
    frequencies,
    shift_matrix,
    sinusoidal,
    wavelengths,
)
from chainrule.nn.recurrent import GRU, LSTM, RNN, Bidirectional, Stack
from chainrule.nn.rope_scaling import LinearScaling, Llama3Scaling, RopeScaling, rope_scaling
from chainrule.nn.rotary_attention import RotaryAttention

Parameter = Param  # PyTorch's name


__all__ = [
    "GRU", "LSTM", "MLP", "RNN", "Adapted", "Adapter", "BatchNorm", "Bidirectional", "DistanceBias", "Dropout",
    "Embedding", "FeedForward", "GatedFeedForward", "GroupNorm", "InstanceNorm", "KeyValuePrefix", "Layer", "LayerNorm",
    "LearnedPositions", "Linear", "LinearScaling", "Llama3Scaling", "LoRALinear", "Module", "ModuleList",
    "MultiHeadAttention", "PReLU", "PackedLoRALinear", "Parameter",
    "RMSNorm", "RopeScaling", "RotaryAttention",
    "Sequential", "SinusoidalPositions", "SoftPrompt", "Stack", "TokenRows", "TransformerBlock", "activation",
    "frequencies", "init", "rope_scaling", "shift_matrix", "sinusoidal", "wavelengths"
]  # fmt: skip

lazy.names(__name__)
