"""Models of `transformers` with random weights, of every kind that is read here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

V = 101  # tokens: a prime, so that no size divides another by chance

# -- decoders ----------------------------------------------------------------------------------------------------

LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 700.0}
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 40, "rope_theta": 500.0,
}  # fmt: skip
LLAMA = {
    "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 3, "hidden_size": 36,
    "intermediate_size": 52, "max_position_embeddings": 19, "vocab_size": V, "bos_token_id": None,
    "eos_token_id": None,
}  # fmt: skip
KINDS: dict[str, Callable[..., Any]] = {
    "gpt2": lambda **more: transformers.GPT2Config(
        n_layer=2, n_head=3, n_embd=24, n_positions=19, vocab_size=V, bos_token_id=None, eos_token_id=None, **more
    ),
    "llama": lambda **more: transformers.LlamaConfig(**LLAMA | more),
    "qwen2": lambda **more: transformers.Qwen2Config(**LLAMA | more),
    "qwen3": lambda **more: transformers.Qwen3Config(**LLAMA | {"head_dim": 10} | more),
    "mistral": lambda **more: transformers.MistralConfig(**LLAMA | {"sliding_window": None} | more),
    "phi3": lambda **more: transformers.Phi3Config(**LLAMA | {"pad_token_id": None} | more),
    "gemma": lambda **more: transformers.GemmaConfig(**LLAMA | {"head_dim": 10, "pad_token_id": None} | more),
    "smollm3": lambda **more: transformers.SmolLM3Config(
        **LLAMA | {"num_hidden_layers": 5, "pad_token_id": None} | more
    ),
    "gpt_neox": lambda **more: transformers.GPTNeoXConfig(
        num_hidden_layers=2, num_attention_heads=3, hidden_size=48, intermediate_size=100,
        max_position_embeddings=19, vocab_size=V, bos_token_id=None, eos_token_id=None, **more
    ),
    "opt": lambda **more: transformers.OPTConfig(
        num_hidden_layers=2, num_attention_heads=3, hidden_size=24, ffn_dim=37, max_position_embeddings=19,
        vocab_size=V, bos_token_id=None, eos_token_id=None, **more
    ),
}  # fmt: skip
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "gpt2 with the exact GELU": ("gpt2", {"activation_function": "gelu", "layer_norm_epsilon": 1e-3}),
    "gpt2, untied": ("gpt2", {"tie_word_embeddings": False}),
    "gpt2, narrow inside": ("gpt2", {"n_inner": 37}),
    "gpt2, four times": ("gpt2", {"n_inner": 96}),
    "llama": ("llama", {"rope_theta": 500.0, "rms_norm_eps": 1e-3}),
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, narrow heads": ("llama", {"head_dim": 4}),
    "llama, wide heads": ("llama", {"head_dim": 22, "num_key_value_heads": None}),
    "llama with biases": ("llama", {"attention_bias": True}),
    "qwen2": ("qwen2", {"rope_theta": 1e6}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True, "num_key_value_heads": None}),
    "llama, linear": ("llama", {"rope_parameters": LINEAR, "max_position_embeddings": 200}),
    "llama, linear, as before": (
        "llama",
        {"rope_scaling": {"type": "linear", "factor": 3.0}, "rope_theta": 500.0},
    ),
    "qwen3": ("qwen3", {"rope_theta": 1e6}),
    "qwen3 with biases": ("qwen3", {"attention_bias": True, "tie_word_embeddings": True}),
    "mistral": ("mistral", {"rms_norm_eps": 1e-3}),
    "mistral with a window of the whole context": ("mistral", {"sliding_window": 19}),
    "phi3": ("phi3", {}),
    "phi3, tied": ("phi3", {"tie_word_embeddings": True, "num_key_value_heads": None}),
    "gemma": ("gemma", {"num_key_value_heads": 1}),
    "gemma as before": ("gemma", {"hidden_act": "gelu"}),
    "smollm3": ("smollm3", {}),
    "pythia": ("gpt_neox", {}),
    "neox, serial": (
        "gpt_neox",
        {"use_parallel_residual": False, "hidden_act": "gelu_new", "rotary_pct": 0.5},
    ),
    "neox, tied": ("gpt_neox", {"tie_word_embeddings": True, "rotary_pct": 1.0, "rotary_emb_base": 500}),
    "opt": ("opt", {}),
    "opt, untied": ("opt", {"tie_word_embeddings": False, "activation_function": "gelu"}),
    "llama 3": ("llama", {"rope_parameters": LLAMA3, "max_position_embeddings": 300, "head_dim": 16}),
}


def decoder(kind: str, **more: Any) -> Any:
    """A decoder of this kind."""
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(KINDS[kind](**more))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model.eval()


# -- encoders ----------------------------------------------------------------------------------------------------

WIDTHS: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "hidden_size": 24,
    "intermediate_size": 40,
    "max_position_embeddings": 21,
    "vocab_size": V,
}
DISTIL = {
    "n_layers": 2,
    "n_heads": 3,
    "dim": 24,
    "hidden_dim": 40,
    "max_position_embeddings": 21,
    "vocab_size": V,
}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", WIDTHS),
    "roberta": ("Roberta", WIDTHS | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "distilbert": ("DistilBert", DISTIL),
    "electra": ("Electra", WIDTHS | {"embedding_size": 16}),
    "electra, one width": ("Electra", WIDTHS | {"embedding_size": 24}),
    "mpnet": ("MPNet", WIDTHS),
}
HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")


def encoder(name: str, head: str) -> Any:
    """An encoder with the head of this name."""
    kind, sizes = ENCODERS[name]
    labels = {"num_labels": 5} if "Classification" in head else {}
    config = getattr(transformers, f"{kind}Config")(**sizes, **labels, pad_token_id=1)
    torch.manual_seed(3)
    model = getattr(transformers, f"{kind}{head}")(config).eval()
    return shaken(model)


def shaken(model: Any) -> Any:
    """Weights larger than new ones, so that every part matters; rows of padding stay 0."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.2 * torch.randn_like(parameter)
            parameter += noise if parameter.ndim < 2 or "position" not in name else 0.5 * noise
    return model


# -- encoder-decoders --------------------------------------------------------------------------------------------

BOTH = {
    f"{side}_{n}": x
    for side in ("encoder", "decoder")
    for n, x in (("layers", 2), ("attention_heads", 3), ("ffn_dim", 40))
}
BART: dict[str, Any] = BOTH | {
    "d_model": 24,
    "max_position_embeddings": 19,
    "vocab_size": V,
    "forced_eos_token_id": None,
}
T5_SIZES: dict[str, Any] = {
    "num_layers": 2, "num_heads": 3, "d_model": 24, "d_kv": 5, "d_ff": 40, "vocab_size": V, "n_positions": 19,
    "decoder_start_token_id": 0, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
}  # fmt: skip
PAIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("Bart", BART),
    "bart, scaled": ("Bart", BART | {"scale_embedding": True, "activation_function": "relu"}),
    "t5": ("T5", T5_SIZES),
    "t5, gated": ("T5", T5_SIZES | {"feed_forward_proj": "gated-gelu"}),
    "t5, tied and not scaled": ("T5", T5_SIZES | {"tie_word_embeddings": False}),
    "t5, untied": ("T5", T5_SIZES | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
}


def pair(name: str) -> Any:
    """An encoder-decoder."""
    kind, sizes = PAIRS[name]
    torch.manual_seed(4)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(
        getattr(transformers, f"{kind}Config")(**sizes)
    )
    model = shaken(model.eval())
    if "untied" in name:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach() + 0.1)
    return model


def marian_or_pegasus(kind: str, *, tied: bool) -> Any:
    """An encoder-decoder whose positions are computed, Marian's or Pegasus's."""
    sizes = {"layers": 2, "attention_heads": 3, "ffn_dim": 40}
    both = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sizes.items()}
    config = getattr(transformers, f"{kind}Config")(
        **both, d_model=24, vocab_size=V, max_position_embeddings=19, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=2, forced_eos_token_id=None, tie_word_embeddings=tied, activation_function="swish",
    )  # fmt: skip
    torch.manual_seed(6)
    model = transformers.AutoModelForSeq2SeqLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter += 0.2 * torch.randn_like(parameter)
    return model
