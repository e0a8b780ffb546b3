"""adapter_config.json: the method of tuning that it names, or that PEFT's settings in it mean."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from chainrule.errors import ChainruleError, FormatError
from chainrule.io.peft.lora import LORA_A, LORA_B
from chainrule.io.peft.names import PREFIX, groups, has_names
from chainrule.io.peft.tokens import INDICES, tokens_of
from chainrule.io.settings import Settings
from chainrule.models import GPT, Llama, Model
from chainrule.models.tuning import LoRA, Method, Prefix, Prompt
from chainrule.models.tuning import method_of as described_method

OURS = "chainrule"
NOT_FIELDS = ("base_sha256", "base_near", "positions")
# Settings that are read, or that say only how training went; any other may change what is computed.
SHARED = {
    "peft_type", "task_type", "inference_mode", "auto_mapping", "base_model_name_or_path", "revision", "peft_version",
    "modules_to_save",
}  # fmt: skip
_VIRTUAL = {
    "num_virtual_tokens", "token_dim", "num_transformer_submodules", "num_attention_heads", "num_layers",
}  # fmt: skip
KNOWN: dict[str, set[str]] = {
    "LORA": {
        "r", "lora_alpha", "lora_dropout", "use_rslora", "bias", "init_lora_weights", "rank_pattern", "alpha_pattern",
        "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out",
        "megatron_core", "qalora_group_size", "eva_config", "runtime_config", INDICES,
    },
    "PREFIX_TUNING": _VIRTUAL | {"encoder_hidden_size", "prefix_projection"},
    "PROMPT_TUNING": _VIRTUAL | {
        "prompt_tuning_init", "prompt_tuning_init_text", "tokenizer_name_or_path", "tokenizer_kwargs",
    },
}  # fmt: skip


def method_of(about: Mapping[str, Any]) -> Method | None:
    """Our method that an adapter_config.json names; None if another program has written it."""
    ours = about.get(OURS)
    if not isinstance(ours, dict):
        return None
    try:
        return described_method({name: value for name, value in ours.items() if name not in NOT_FIELDS})
    except (TypeError, ValueError, OverflowError) as error:  # a word where a number must be
        if isinstance(error, ChainruleError):
            raise
        rule = f"must be the settings of a method, as they were saved: {error}"
        raise FormatError(f"{OURS} is {json.dumps(ours)[:200]} ({rule})") from error


def foreign_method(model: Model, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Method:
    """The method of a file that PEFT has written, for a plain model; what we do not have is refused."""
    settings, kind = Settings(dict(about)), about.get("peft_type")
    if not has_names(model):
        rule = "must be for a model of transformers that is no reward model"
        raise FormatError(f"peft_type is {kind!r} for a {type(model).__name__} ({rule})")
    if not isinstance(kind, str) or kind not in KNOWN:
        raise FormatError(f"peft_type is {kind!r} (must be LORA, PREFIX_TUNING or PROMPT_TUNING)")
    settings.only(SHARED | KNOWN[kind])
    if kind == "PROMPT_TUNING":
        return Prompt(length=settings.integer("num_virtual_tokens"))
    if kind == "PREFIX_TUNING":
        settings.must("prefix_projection", False)
        if not isinstance(model, GPT | Llama):
            rule = (
                "must be a GPT or a Llama: elsewhere the prefix takes positions there, and here it takes none"
            )
            raise FormatError(f"peft_type is PREFIX_TUNING for a {type(model).__name__} ({rule})")
        return Prefix(length=settings.integer("num_virtual_tokens"))
    settings.must("bias", "none")
    settings.must("init_lora_weights", True, False, "gaussian", "orthogonal", "eva")  # others change the base
    for name in ("rank_pattern", "alpha_pattern"):
        if about.get(name):
            raise FormatError(f"{name} is set (is not supported, must be empty: one rank for all layers)")
    tokens = tokens_of(model, about)
    rank = settings.integer("r", default=8)
    alpha = settings.number("lora_alpha", default=8)
    if settings.flag("use_rslora", False):
        alpha *= math.sqrt(rank)  # it divides by √r
    there = {
        name.removeprefix(PREFIX).removesuffix(f".{kind}")
        for kind in (LORA_A, LORA_B)
        for name in arrays
        if name.endswith(kind)
    }
    known = groups(model)
    if unknown := sorted(there - known.keys()) or not there:
        what = unknown[0] if isinstance(unknown, list) else "of no name"
        raise FormatError(f"adapter of the layer {what} (must be a linear layer in a block of the model)")
    targets = [path for theirs, paths in known.items() if theirs in there for path in paths]
    dropout = settings.number("lora_dropout", default=0.0)
    return LoRA(rank=rank, alpha=alpha, dropout=dropout, targets=tuple(targets), fused=True, tokens=tokens)
