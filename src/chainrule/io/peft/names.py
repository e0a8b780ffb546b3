"""What layers are called in `transformers`, and which of ours make one there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.io.hf import gpt2, llama, marian, neox
from chainrule.io.hf.architectures import MODULES, has_twin
from chainrule.models import EncoderDecoder, LanguageModel, Llama, Model, NeoX, Reward
from chainrule.models.tuning.parts import base_name
from chainrule.models.tuning.places import block_of
from chainrule.nn import Linear

PREFIX = "base_model.model."


def has_names(model: Model) -> bool:
    """Its layers have the names of transformers in an adapter's file; those of a reward model keep ours."""
    return has_twin(model) and not isinstance(model, Reward)


def module_of(model: Model) -> Any:
    return next(module for module in MODULES if type(model) in module.MODELS.values())


def task_type(model: Model) -> str | None:
    if isinstance(model, LanguageModel):
        return "CAUSAL_LM"
    if isinstance(model, EncoderDecoder):
        return "SEQ_2_SEQ_LM"
    return {"BERTClassifier": "SEQ_CLS", "BERTTagger": "TOKEN_CLS"}.get(type(model).__name__)


def linears(model: Model) -> dict[str, Linear]:
    """The linear layers in blocks by their paths in a plain model."""
    found = (
        (path.removesuffix(".base"), layer) for path, layer in model.named_layers() if type(layer) is Linear
    )
    return {path: layer for path, layer in found if block_of(path) is not None}


def groups(model: Model) -> dict[str, list[str]]:
    """The layers of transformers by name, and the paths of ours that each consists of."""
    found: dict[str, list[str]] = {}
    layers = linears(model)
    for path in layers:
        parts = next((parts for parts in _fused(model) if path.endswith(tuple(parts))), ())
        stem = path.removesuffix(next((part for part in parts if path.endswith(part)), ""))
        paths = [f"{stem}{part}" for part in parts] or [path]
        if paths[0] == path:
            rows = {each: np.zeros((layers[each].weight.shape[0], 1), np.float32) for each in paths}
            found[theirs_of(model, rows)[0]] = paths
    return found


def _fused(model: Model) -> list[tuple[str, ...]]:
    """The ends of the names of our layers that are one layer there."""
    if isinstance(model, NeoX):
        return [neox.PARTS]
    phi3 = isinstance(model, Llama) and model.config.variant == "phi3"
    return list(llama.FUSED.values()) if phi3 else []


def theirs_of(model: Model, rows: Mapping[str, Array]) -> tuple[str, Array]:
    """Matrices of our layers, which have the rows of their weights, as the one of transformers."""
    module, state = module_of(model), {f"{path}.weight": array for path, array in rows.items()}
    found = state if module is marian else module.write_weights(state, model.config)
    ((name, array),) = ((name, array) for name, array in found.items() if name.endswith(".weight"))
    return name.removesuffix(".weight"), _upright(module, name, array)


def ours_of(model: Model, name: str, array: Array) -> dict[str, Array]:
    """The inverse of `_theirs`."""
    module, key = module_of(model), f"{name}.weight"
    state = {key: _upright(module, key, array)}
    found = state if module is marian else module.read_weights(state, model.config)
    return {each.removesuffix(".weight"): np.asarray(rows) for each, rows in found.items()}


def _upright(module: Any, name: str, array: Array) -> Array:
    """(out, in), also where transformers has (in, out)."""
    return np.asarray(array).T if module is gpt2 and name.endswith(gpt2.TRANSPOSED) else np.asarray(array)


def extras(model: Model, rest: Mapping[str, Array]) -> dict[str, Array]:
    """Whole weights beside the pairs: those of a head for labels."""
    plain = {base_name(name): array for name, array in rest.items()}
    written = module_of(model).write_weights(plain, model.config) if plain else {}
    return {f"{PREFIX}{name}": np.asarray(array) for name, array in written.items()}
