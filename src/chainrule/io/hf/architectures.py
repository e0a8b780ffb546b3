"""Which model of Chainrule is which of Hugging Face: a module each, with names, sizes and weights both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from chainrule.errors import CheckpointError
from chainrule.io.hf import bert, gpt2, llama, marian, neox, opt, reward, t5
from chainrule.io.lazy import Arrays
from chainrule.io.left_out import refusal
from chainrule.io.opened import Opened
from chainrule.io.settings import Settings
from chainrule.models import Model, describe
from chainrule.models.registry import ALL, KNOWN, described

LONGEST_CONTEXT = 2**20  # tokens
CONTEXTS = ("block_size", "max_distance")  # sizes without an array of their own

# Modules with NAMES, MODELS by their configs, read_config, write_config, read_weights and write_weights. Of two modules
# with the same model the first one writes.
MODULES: tuple[Any, ...] = (gpt2, llama, neox, opt, bert, marian, t5, reward)
ARCHITECTURES = {name: module for module in MODULES for name in module.NAMES}


def to_files(model: Model, arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The content of `config.json` and `model.safetensors`: Hugging Face's form, or our own if they lack the model.

    `arrays` are those of the model, or copies; or none, if only the config is wanted.
    """
    module = _module(model)
    config = None if module is None else module.write_config(model.config)
    if module is None or config is None:
        return describe(model), arrays
    names = [name for name, family in ALL.items() if family.model is type(model)]
    ours = config.get("chainrule", {}) | ({"family": names[0]} if names else {})
    weights = module.write_weights(arrays, model.config) if arrays else {}
    return config | {"dtype": "float32", "chainrule": ours}, weights


def family_name(config: Mapping[str, Any]) -> Any:
    """The family of a `config.json` by our name; Hugging Face's name if the family is unknown."""
    ours = config.get("chainrule")
    return ours.get("family") if isinstance(ours, dict) else config.get("model_type")


def has_twin(model: Model) -> bool:
    """True if Hugging Face has this model."""
    module = _module(model)
    return module is not None and module.write_config(model.config) is not None


def unlike(model: Model) -> str:
    """Which settings of a model Hugging Face has not, in words; empty if it is the model itself, or all of them."""
    told = getattr(_module(model), "unlike", None)
    found = {} if told is None else told(model.config)
    return ", ".join(
        f"{name} is {getattr(model.config, name)} (must be {rule})" for name, rule in found.items()
    )


def known_kind(config: Mapping[str, Any]) -> str:
    """The `model_type` of a `config.json`; a model that is not read is refused."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES | ALL:
        raise refusal("model_type", kind, ARCHITECTURES | KNOWN)
    return kind


def to_opened(config: Mapping[str, Any], arrays: Mapping[str, Any]) -> Opened:
    """The model in the content of these two files, never larger than its arrays, with its weights where they are."""
    kind = known_kind(config)
    if kind not in ARCHITECTURES or _is_ours(config):
        if kind == "seq2seq":  # a file that does not say it is of an earlier version
            config = {"norm": "post"} | dict(config)
        model, sizes = described(config)
        check_fields(sizes, arrays)
        check_size(model.n_params(sizes), arrays, getattr(sizes, "n_layer", 0))
        return Opened.of(model, sizes, dict(arrays))
    module = reward if reward.holds_reward(config) else ARCHITECTURES[kind]
    sizes = module.read_config(Settings(config, arrays.keys()))
    check_fields(sizes, arrays)
    check_size(sizes.n_params, arrays, sizes.n_layer)
    return Opened.of(module.MODELS[type(sizes)], sizes, module.read_weights(arrays, sizes))


def check_fields(sizes: Any, arrays: Mapping[str, Any]) -> None:
    """Refuse a size beyond what the file can hold, before anything is computed from it.

    A context takes no place in a file where positions are rotated: it has a limit of its own.
    """
    found = sum(array.size for array in arrays.values())
    for name, value in vars(sizes).items():
        most = max(LONGEST_CONTEXT, found) if name in CONTEXTS else found
        if type(value) is int and value > most:
            limit = "the longest context" if name in CONTEXTS else "the number of values in the file"
            raise CheckpointError(f"{name} is {value} (must be at most {most:,}, {limit})")


def check_size(n_params: int, arrays: Mapping[str, Any], layers: int = 0) -> None:
    """Refuse a model of more parameters than the file has values, before allocating memory for it.

    Also refuse more layers than arrays: an empty layer takes memory too.
    """
    found = sum(array.size for array in arrays.values())
    if n_params > found:
        raise CheckpointError(
            f"the sizes ask for {n_params:.10g} parameters, the weights are {found} values (must be as many)"
        )
    if layers > len(arrays):
        raise CheckpointError(
            f"the sizes ask for {layers} layers, the weights are {len(arrays)} arrays (must be at least as many)"
        )


def _module(model: Model) -> Any:
    return next((module for module in MODULES if type(model) in module.MODELS.values()), None)


def _is_ours(config: Mapping[str, Any]) -> bool:
    """True for our own form of a `config.json`, as in older checkpoints: only fields of our dataclass."""
    family = KNOWN.get(str(config["model_type"]))
    return family is not None and config.keys() - {"model_type"} <= {
        field.name for field in fields(family.config)
    }
