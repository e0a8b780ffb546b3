"""Which model of Chainrule is which of Hugging Face: a module each, with names, sizes and weights both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from chainrule.errors import CheckpointError, FormatError
from chainrule.io.hf import bert, gpt2, llama, marian, t5
from chainrule.io.safetensors import Arrays
from chainrule.io.settings import Settings
from chainrule.models import Model, describe, n_params, rebuild
from chainrule.models.registry import ALL, KNOWN
from chainrule.nn.init import unfilled
from chainrule.suggest import hinted

# Modules with NAMES, MODELS by their configs, read_config, write_config, read_weights and write_weights.
MODULES: tuple[Any, ...] = (gpt2, llama, bert, marian, t5)
ARCHITECTURES = {name: module for module in MODULES for name in module.NAMES}


def to_files(model: Model) -> tuple[dict[str, Any], Arrays]:
    """The content of `config.json` and `model.safetensors`: Hugging Face's form, or our own if they lack the model."""
    module = _module(model)
    config = None if module is None else module.write_config(model.config)
    if module is None or config is None:
        return describe(model), model.state()
    names = [name for name, family in KNOWN.items() if family.model is type(model)]
    ours = config.get("chainrule", {}) | ({"family": names[0]} if names else {})
    return config | {"dtype": "float32", "chainrule": ours}, module.write_weights(model.state(), model.config)


def family_name(config: Mapping[str, Any]) -> Any:
    """The family of a `config.json` by our name; Hugging Face's name if the family is unknown."""
    ours = config.get("chainrule")
    return ours.get("family") if isinstance(ours, dict) else config.get("model_type")


def has_twin(model: Model) -> bool:
    """True if Hugging Face has this model."""
    module = _module(model)
    return module is not None and module.write_config(model.config) is not None


def to_model(config: Mapping[str, Any], arrays: Mapping[str, Any]) -> Model:
    """The model in the content of these two files, in evaluation mode; never larger than its arrays."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES or _is_ours(config):
        if kind not in ALL:
            known = ARCHITECTURES | KNOWN
            rule = hinted(f"must be one of {', '.join(known)}", str(kind), known)
            raise FormatError(f"model_type is {kind!r} ({rule})")
        if kind == "seq2seq":
            config = {"norm": "post"} | dict(
                config
            )  # what a file of an earlier version means that does not say it
        check_size(n_params(config), arrays, config.get("n_layer", 0))
        with unfilled():
            model: Model = rebuild(config)
    else:
        module = ARCHITECTURES[kind]
        sizes = module.read_config(Settings(config, arrays.keys()))
        check_size(sizes.n_params, arrays, sizes.n_layer)
        arrays = module.read_weights(arrays, sizes)
        with unfilled():
            model = module.MODELS[type(sizes)](sizes)
    model.load(arrays)
    return model.eval()


def check_size(n_params: int, arrays: Mapping[str, Any], layers: int = 0) -> None:
    """Refuse a model of more parameters than the file has values, before allocating memory for it.

    Also refuse more layers than arrays: an empty layer takes memory too.
    """
    found = sum(array.size for array in arrays.values())
    if n_params > found:
        raise CheckpointError(
            f"checkpoint: config.json asks for {n_params:.10g} parameters, "
            f"model.safetensors has {found} values (must be as many)"
        )
    if layers > len(arrays):
        raise CheckpointError(
            f"checkpoint: config.json asks for {layers} layers, model.safetensors has {len(arrays)} arrays "
            "(must be at least as many)"
        )


def _module(model: Model) -> Any:
    return next((module for module in MODULES if type(model) in module.MODELS.values()), None)


def _is_ours(config: Mapping[str, Any]) -> bool:
    """True for our own form of a `config.json`, as in older checkpoints: only fields of our dataclass."""
    family = KNOWN.get(str(config["model_type"]))
    return family is not None and config.keys() - {"model_type"} <= {
        field.name for field in fields(family.config)
    }
