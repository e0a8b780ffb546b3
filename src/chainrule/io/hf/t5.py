"""T5 as Hugging Face's `T5ForConditionalGeneration`: the same names, but for the bias by distance and the decoder.

The head is tied and its input divided by √C, unless `tie_word_embeddings` is false, as in version 1.1 and Flan-T5.
Newer files say the division by `scale_decoder_outputs`, and by their weights whether the head is tied. mT5 never
divides.
"""

from __future__ import annotations

from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf.marian import start_of
from chainrule.io.hf.weights import without_copies
from chainrule.io.safetensors import Arrays
from chainrule.io.settings import Fields, Settings, written
from chainrule.models import T5, Model, T5Config

NAMES = ("t5", "mt5")  # the second is the same model, with a vocabulary of many languages
MODELS: dict[type[Any], type[Model]] = {T5Config: T5}
CLASS = "T5ForConditionalGeneration"
# Inside an MLP: our activation, and whether it is gated.
PROJECTIONS = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "silu": ("silu", False),
    "gated-relu": ("relu", True),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
}
FIELDS: Fields = {
    "n_layer": ("num_layers", 6), "n_head": ("num_heads", 8), "n_embd": ("d_model", 512),
    "block_size": ("n_positions", 512), "vocab_size": ("vocab_size", 32128), "dropout": ("dropout_rate", 0.1),
    "relative_buckets": ("relative_attention_num_buckets", 32), "farthest": ("relative_attention_max_distance", 128),
    "norm_eps": ("layer_norm_epsilon", 1e-6),
}  # fmt: skip
BIAS = "block.0.layer.0.SelfAttention.relative_attention_bias."
RENAMED = (  # ours, theirs
    ("encoder.relative_attention_bias.", f"encoder.{BIAS}"),
    ("decoder_stack.relative_attention_bias.", f"decoder.{BIAS}"),
    ("decoder_stack.", "decoder."),
)
SHARED, HEAD = "shared.weight", "lm_head.weight"
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
# In files of old versions; the decoder reads its source without positions.
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


def read_config(settings: Settings) -> T5Config:
    """Our config from a `config.json`; options that T5 lacks are refused."""
    named = settings.values.get("architectures", [CLASS])
    if named not in ([CLASS], [f"M{CLASS}"], ["T5WithLMHeadModel"]):
        raise FormatError(f"architectures is {named!r} (is not supported, must be {CLASS})")
    sizes, size = settings.fields(FIELDS), settings.integer("d_kv", default=64)
    width, inside = sizes["n_embd"], settings.integer("d_ff", default=2048)
    settings.must("num_decoder_layers", sizes["n_layer"])
    written = settings.choice("feed_forward_proj", {name: name for name in PROJECTIONS}, "relu")
    activation, gated = PROJECTIONS[written]
    tied = settings.flag("tie_word_embeddings", True)
    scaled = settings.values["model_type"] == "t5" and settings.flag("scale_decoder_outputs", tied)
    ours = settings.section("chainrule")
    return T5Config(
        **sizes,
        head_size=None if size * sizes["n_head"] == width else size,
        n_hidden=None if inside == 4 * width else inside,
        activation=activation,
        gated=gated,
        tied=ours.flag("tied", scaled or HEAD not in settings.weights),
        scale_output=scaled,
        label_smoothing=ours.number("label_smoothing", default=0.0),
        scheduled_sampling=ours.number("scheduled_sampling", default=0.0),
        target_start=start_of(settings) if ours.values or settings.has("decoder_start_token_id") else "pad",
    )


def write_config(config: T5Config) -> dict[str, Any] | None:
    """The content of `config.json`; None if Hugging Face lacks the model."""
    wanted = (config.activation, config.gated)
    names = [name for name, meant in PROJECTIONS.items() if meant == wanted]
    if not names:
        return None
    return {
        "model_type": "t5",
        "architectures": [CLASS],
        **written(config, FIELDS),
        "num_decoder_layers": config.n_layer,
        "d_kv": config.per_head,
        "d_ff": config.inside,
        "feed_forward_proj": names[0],
        "tie_word_embeddings": config.scale_output,  # which is what they make of it
        "scale_decoder_outputs": config.scale_output,
        "is_encoder_decoder": True,
        "chainrule": {
            "tied": config.tied,
            "label_smoothing": config.label_smoothing,
            "scheduled_sampling": config.scheduled_sampling,
            "target_start": config.target_start,
        },
    }


def read_weights(tensors: Arrays, config: T5Config) -> Arrays:
    """Arrays by our names, from Hugging Face's."""
    found = {name: array for name, array in tensors.items() if name != UNUSED}
    if SHARED not in found and COPIES[0] in found:
        found[SHARED] = found[COPIES[0]]
    copies = dict.fromkeys((*COPIES, HEAD) if config.tied else COPIES, SHARED)
    return {_renamed(name, ours=True): array for name, array in without_copies(found, copies).items()}


def write_weights(state: Arrays, config: T5Config) -> Arrays:
    """Arrays by Hugging Face's names, from ours."""
    return {_renamed(name, ours=False): array for name, array in state.items()}


def _renamed(name: str, *, ours: bool) -> str:
    for pair in RENAMED:
        new, old = pair if ours else pair[::-1]
        if name.startswith(old):
            return new + name[len(old) :]
    return name
