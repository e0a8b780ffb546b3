"""The layers that methods put into a model: finding them, taking them out, and adding them into its weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import CheckpointError, ConfigError, kind_of
from chainrule.models.tuning.places import put
from chainrule.nn import Adapted, KeyValuePrefix, Layer, LoRALinear, SoftPrompt, TokenRows
from chainrule.nn.init import unfilled

WRAPPERS = (LoRALinear, Adapted, SoftPrompt, TokenRows)  # around a layer of the base, their `base`
PARTS = (*WRAPPERS, KeyValuePrefix)


def is_part(layer: Layer) -> bool:
    """The layer was put there by a method."""
    return isinstance(layer, PARTS)


def parts(model: Layer) -> dict[str, Layer]:
    """All of them by path."""
    return {path: layer for path, layer in model.named_layers() if is_part(layer)}


def base_name(name: str) -> str:
    """The name that a parameter of the base has in a plain model."""
    return re.sub(r"(?:^|(?<=\.))base\.", "", name)


def strip(model: Layer) -> Any:
    """Take all parts out: the model is the base again. Returns it."""
    for path, layer in reversed(parts(model).items()):  # from the inside: a part may be around another one
        if isinstance(layer, WRAPPERS):
            if isinstance(layer, TokenRows):
                layer.restore()
            if isinstance(layer, LoRALinear) and layer.before_merge is not None:
                layer.unmerge()
            put(model, path, layer.base)
        else:
            put(model, path, None)
    return model


def merged_state(model: Layer, refused: str = "merge") -> dict[str, Array]:
    """The weights of a plain model that computes the same: changes of LoRA added in, and rows of tokens put in.

    Other parts cannot be added in.

    An error begins with what is then `refused`.
    """
    state = {base_name(name): array for name, array in model.state().items() if not _is_added(name)}
    for path, layer in parts(model).items():
        if isinstance(layer, TokenRows):
            state[base_name(f"{path}.base.weight")][layer.tokens] = layer.token_rows.array
            continue
        if not isinstance(layer, LoRALinear):
            rule = "must be LoRA: other parts compute what no weight of the model can; use the run as it is"
            raise ConfigError(f"{refused}: {path} is {kind_of(layer)} ({rule})")
        if layer.before_merge is None:
            state[base_name(f"{path}.base.weight")] += layer.change()
    return state


def _is_added(name: str) -> bool:
    return bool(re.search(r"(^|\.)(lora_[AB]|adapter|prefix|prompt|token_rows)(\.|$)", name))


def merged(model: Any, refused: str = "merge") -> Any:
    """A plain model with the merged weights; the model itself if nothing was added to it.

    An error begins with what is then `refused`, such as "export".
    """
    if not parts(model):
        return model
    with unfilled():
        plain = type(model)(model.config)
    plain.load(merged_state(model, refused))
    return plain.train(model.training)


class Adapters:
    """Several adapters side by side on one base: the parts of each are made once, and swapped at run time.

    >>> import chainrule as cr
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    >>> adapters = cr.models.tuning.Adapters(model)
    >>> adapters.add("formal", cr.models.tuning.LoRA(rank=2))
    >>> adapters.add("terse", cr.models.tuning.LoRA(rank=4))
    >>> adapters.use("formal").count(), adapters.use(None).count()
    (5648, 5520)
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.active = ""  # the base alone
        self.parts: dict[str, dict[str, Layer]] = {}
        self.values: dict[str, dict[str, Array]] = {"": {}}  # of weights of the base that an adapter replaces
        self.learning = {"": _learning(model)}

    def add(self, name: str, method: Any, state: Mapping[str, Array] | None = None) -> None:
        """An adapter under a name, with what was `trained`, or as new as the method makes it."""
        if not name:
            raise ConfigError("adapters: the name is empty (must be a word: use(None) is the base)")
        self.use(None)
        try:
            method.apply(self.model)
            own = {base_name(n): array for n, array in trained(self.model).items() if not _is_added(n)}
            before = {n: array.copy() for n, array in own.items()}
            if state is not None:
                load_trained(self.model, state)
            self.values[""] = before | self.values[""]
            self.values[name] = {n: array.copy() for n, array in own.items()}
            self.parts[name], self.learning[name] = parts(self.model), _learning(self.model)
        finally:  # a method that was refused may have changed half of the model
            self._put("")

    def use(self, name: str | None) -> Any:
        """The model with one of the adapters, or without any. What the one before has learned is kept."""
        if name and name not in self.parts:
            raise ConfigError(
                f"adapters: {name!r} (must be one of {', '.join(self.parts) or 'none: add one first'})"
            )
        self.learning[self.active] = _learning(self.model)
        arrays = strip(self.model).arrays()
        self.values[self.active] = {own: arrays[own].copy() for own in self.values[self.active]}
        return self._put(name or "")

    def _put(self, name: str) -> Any:
        arrays = strip(self.model).arrays()
        for own, value in (self.values[""] | self.values[name]).items():
            arrays[own][...] = value
        for own, param in self.model.named_parameters():
            param.requires_grad = self.learning[name][own]
        self.model.parameters().changed()
        for path, part in self.parts.get(name, {}).items():
            put(self.model, path, part)
        self.active = name
        return self.model


def _learning(model: Layer) -> dict[str, bool]:
    """Which parameters of the base learn."""
    return {base_name(n): p.requires_grad for n, p in model.named_parameters() if not _is_added(n)}


def trained(model: Layer) -> dict[str, Array]:
    """The parameters that learn, by name: the arrays themselves; a tied one under its first name."""
    found, seen = {}, set()
    for name, param in model.named_parameters():
        if param.requires_grad and id(param) not in seen:
            seen.add(id(param))
            found[name] = param.array
    return found


def load_trained(model: Layer, state: Mapping[str, Array]) -> None:
    """Take the values of what `trained` gave; names and shapes must match exactly. Changes all or nothing."""
    arrays = trained(model)
    if wrong := sorted(arrays.keys() ^ state.keys()):
        what = "lacks" if wrong[0] in arrays else "has the unknown"
        raise CheckpointError(f"adapter: {what} {wrong[0]} (must be of the same method and model)")
    for name, array in arrays.items():
        if np.shape(state[name]) != array.shape:
            raise CheckpointError(
                f"adapter: {name} has shape {np.shape(state[name])} (must be {array.shape})"
            )
    for name, param in model.named_parameters():
        if name in arrays:
            param.array[...] = state[name]
            param.version += 1
