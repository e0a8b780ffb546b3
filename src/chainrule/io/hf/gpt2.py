"""GPT as Hugging Face's `GPT2LMHeadModel`, which stores matrices (in, out) and has a bias in every layer."""

from __future__ import annotations

from typing import Any

from chainrule.io.hf.weights import drop_prefix, with_zero_biases, without_copies, without_zero_biases
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Fields, Settings, written
from chainrule.models import GPT, GPTConfig, Model

NAMES = ("gpt2",)
MODELS: dict[type[Any], type[Model]] = {GPTConfig: GPT}
PREFIX, HEAD = "transformer.", "lm_head.weight"
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
LAYERS = (*TRANSPOSED, "ln_1.weight", "ln_2.weight", "ln_f.weight")  # every weight with a bias
UNUSED = (".attn.bias", ".attn.masked_bias")  # older files store the causal mask
# Their names of activations and ours, and which of theirs is written.
ACTIVATIONS = {"gelu": "gelu", "relu": "relu"} | dict.fromkeys(
    ("gelu_new", "gelu_pytorch_tanh", "gelu_fast"), "gelu_tanh"
)
FIELDS: Fields = {
    "n_layer": ("n_layer", 12), "n_head": ("n_head", 12), "n_embd": ("n_embd", 768),
    "vocab_size": ("vocab_size", 50257), "dropout": ("attn_pdrop", 0.1), "norm_eps": ("layer_norm_epsilon", 1e-5),
    "tied": ("tie_word_embeddings", True),
}  # fmt: skip
WRITTEN = {"gelu": "gelu", "relu": "relu", "gelu_tanh": "gelu_new"}


def read_config(settings: Settings) -> GPTConfig:
    """Our config from a `config.json`; options that GPT lacks are refused."""
    settings.must("scale_attn_weights", True)
    settings.must("scale_attn_by_inverse_layer_idx", False)
    settings.must("add_cross_attention", False)
    ours = settings.section("chainrule")
    return GPTConfig(
        **settings.fields(FIELDS),
        n_hidden=settings.integer("n_inner") if settings.has("n_inner") else None,
        block_size=settings.integer("n_positions", "n_ctx", default=1024),
        bias=ours.flag("bias", True),
        activation=settings.choice("activation_function", ACTIVATIONS, "gelu_new"),
    )


def write_config(config: GPTConfig) -> dict[str, Any]:
    """The content of `config.json`."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        **written(config, FIELDS),
        "n_inner": config.n_hidden,
        "n_positions": config.block_size,
        "activation_function": WRITTEN[config.activation],
        "resid_pdrop": config.dropout,
        "embd_pdrop": 0.0,
        "chainrule": {"bias": config.bias},
    }


def read_weights(tensors: Arrays, config: GPTConfig) -> Arrays:
    """Arrays by our names and shapes, from Hugging Face's."""
    found = drop_prefix(tensors, PREFIX)
    found = {name: array for name, array in found.items() if not name.endswith(UNUSED)}
    if config.tied:
        found = without_copies(found, {HEAD: "wte.weight"})
    if not config.bias:
        found = without_zero_biases(found, ".bias")
    return {name: array.T if name.endswith(TRANSPOSED) else array for name, array in found.items()}


def write_weights(state: Arrays, config: GPTConfig) -> Arrays:
    """Arrays by Hugging Face's names and shapes, from ours."""
    whole = with_biases(state, config)
    turned = {name: array.T if name.endswith(TRANSPOSED) else array for name, array in whole.items()}
    return {name if name == HEAD else PREFIX + name: array for name, array in turned.items()}


def with_biases(state: Arrays, config: GPTConfig) -> Arrays:
    """All layers with biases: 0 where ours have none."""
    return state if config.bias else with_zero_biases(state, *LAYERS)
