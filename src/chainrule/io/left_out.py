"""Models that are not read, and what they have that ours lack."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from chainrule.errors import FormatError

SHOWN = 5  # names that a message lists

# By the missing part: the names in Hugging Face's config.json, then those in GGUF that differ.
MISSING = {
    "a mixture of experts": (
        "mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "phimoe", "granitemoe", "gpt_oss", "dbrx", "deepseek_v2",
        "deepseek_v3", "llama4", "qwen2moe", "qwen3moe", "gpt-oss", "deepseek2",
    ),
    "soft caps on scores and logits, and norms after each part": ("gemma2",),
    "norms after each part, and sliding windows": ("gemma3", "gemma3_text", "gemma3n"),
    "norms after attention and MLP instead of before": ("olmo2", "olmo3"),
    "norms without gains": ("olmo",),
    "layer norms in a Llama": ("stablelm", "starcoder2", "nemotron", "cohere", "cohere2", "command-r"),
    "scaled residuals and logits": ("granite", "minicpm"),
    "attention and MLP that share one norm": ("gptj", "codegen", "phi", "phi2", "falcon"),
    "ALiBi positions": ("bloom", "mpt", "jina-bert-v2"),
    "attention to a local window in every second layer": ("gpt_neo",),
    "keys and values of one head for all": ("gpt_bigcode", "starcoder"),
    "relative positions between the two streams of attention": ("deberta", "deberta-v2"),
    "layers that share their weights": ("albert",),
    "attention to windows and a few global tokens": ("longformer", "big_bird", "led", "longt5"),
    "rotary positions and windows in an encoder": ("modernbert", "nomic_bert", "modern-bert", "nomic-bert"),
    "two streams of attention": ("xlnet",),
    "a token for the language before each text": ("mbart", "m2m_100", "nllb-moe"),
    "a bias for each distance in every layer": ("umt5",),
    "a state space instead of attention": ("mamba", "mamba2", "jamba", "falcon_mamba"),
    "a linear recurrence instead of attention": ("rwkv", "rwkv6", "rwkv7", "recurrent_gemma"),
}  # fmt: skip


def head_refusal(named: Any, rule: str) -> FormatError:
    """The error for the weights of a class whose head is not read; its body is, once it is saved by itself."""
    fix = "AutoModel.from_pretrained(DIR).save_pretrained(NEW) of transformers saves the body"
    return FormatError(f"architectures is {named!r} ({rule}; {fix})")


def refusal(
    setting: str, kind: Any, known: Collection[str], in_directories: Collection[str] = ()
) -> FormatError:
    """The error for a model of another kind: why, and the first of those that are read.

    The kinds `in_directories` are read from a directory of Hugging Face, and from this file not.
    """
    part = next((part for part, names in MISSING.items() if kind in names), None)
    why = "is not known" if part is None else f"is not supported: it has {part}"
    if isinstance(kind, str) and kind in in_directories:
        why = "is read from its Hugging Face directory, not from GGUF: give that directory"
    shown, others = ", ".join([*known][:SHOWN]), max(0, len(known) - SHOWN)
    rule = f"must be one of {shown} and {others} others, see docs/guide/interchange.md"
    return FormatError(f"{setting} is {repr(kind)[:60]} ({why}; {rule})")
