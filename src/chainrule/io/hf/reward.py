"""Reward models as Hugging Face's `GPT2ForSequenceClassification` and its like, with one label: the body of a language
model without its head, and `score`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf import gpt2, llama, neox
from chainrule.io.hf.weights import drop_prefix
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Settings
from chainrule.models import Model
from chainrule.models.reward import REWARDS

NAMES = ()  # `model_type` is that of the body
MODELS: dict[type[Any], type[Model]] = {config: kind for kind, config in REWARDS.values()}
BODIES: tuple[Any, ...] = (gpt2, llama, neox)
HEADS = ("LMHeadModel", "ForCausalLM")  # how the classes of the bodies end
CLASS, BODY, SCORE = "ForSequenceClassification", "body.", "score.weight"


def holds_reward(config: Mapping[str, Any]) -> bool:
    """Whether a `config.json` is that of a language model's body with a head for texts."""
    named = config.get("architectures")
    name = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    return name.endswith(CLASS) and any(config.get("model_type") in module.NAMES for module in BODIES)


def read_config(settings: Settings) -> Any:
    """The size of the body, and one label."""
    labels = settings.values.get("id2label", {0: "", 1: ""})
    count = settings.values.get("num_labels", len(labels) if isinstance(labels, dict) else labels)
    if count != 1:
        raise FormatError(f"num_labels is {count} (must be 1: a reward is one number)")
    module = next(module for module in BODIES if settings.values["model_type"] in module.NAMES)
    body = module.read_config(settings)
    config = REWARDS[module.MODELS[type(body)]][1]
    return config(**{each.name: getattr(body, each.name) for each in fields(body)} | {"tied": True})


def write_config(config: Any) -> dict[str, Any] | None:
    """The content of `config.json`; None if no class of transformers has this body."""
    found = _module(config).write_config(config)
    if found is None:
        return None
    name = found["architectures"][0]
    stem = next(name.removesuffix(head) for head in HEADS if name.endswith(head))
    labels = {"id2label": {"0": "reward"}, "label2id": {"reward": 0}}
    return dict(found) | labels | {"architectures": [stem + CLASS]}


def read_weights(tensors: Arrays, config: Any) -> Arrays:
    """Arrays by our names and shapes, from Hugging Face's."""
    if SCORE not in tensors:
        raise FormatError(f"weights: no {SCORE} (must be those of a {CLASS[3:]})")
    rest = {name: array for name, array in tensors.items() if name != SCORE}
    body = _module(config).read_weights(rest, config)
    return {BODY + name: array for name, array in body.items()} | {SCORE: tensors[SCORE]}


def write_weights(state: Arrays, config: Any) -> Arrays:
    """Arrays by Hugging Face's names and shapes, from ours."""
    body = {name: array for name, array in state.items() if name != SCORE}
    return dict(_module(config).write_weights(drop_prefix(body, BODY), config)) | {SCORE: state[SCORE]}


def _module(config: Any) -> Any:
    """That of the body."""
    return next(module for module in BODIES if isinstance(config, tuple(module.MODELS)))
