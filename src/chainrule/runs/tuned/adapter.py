"""A tuned model on disk: what its method has trained, without the base, which is named by its path and its hash.

    adapter_model.safetensors     what learned, rows of new tokens among it, and what else differs from the base
    adapter_config.json           the method, and the base: its path and the SHA-256 of its weights

A checkpoint of such a run has these two in place of model.safetensors. A directory with them alone is read too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import CheckpointError, ConfigError, FormatError
from chainrule.io import peft, safetensors
from chainrule.io.files import read_bytes
from chainrule.io.hf.architectures import check_size
from chainrule.io.lazy import later
from chainrule.io.opened import is_stored, lazy_arrays
from chainrule.models import BERT, LanguageModel, Model
from chainrule.models.registry import described
from chainrule.models.tuning import Method, Prefix
from chainrule.models.tuning.parts import base_name, merged, parts
from chainrule.nn import TokenRows
from chainrule.nn.init import stored_parameters, unfilled
from chainrule.runs.tuned.stored import attach_tuned, longer
from chainrule.text import Tokenizer

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
POSITIONS = {"positions": "first"}  # the mark of a prefix that takes some
_chain: ContextVar[tuple[Path, ...]] = ContextVar("adapters whose base is being read", default=())


class Base(NamedTuple):
    """The model that a run has tuned."""

    path: Path
    sha256: str
    """Of its weights."""

    @classmethod
    def of(cls, path: str | Path, model: Model) -> Base:
        return cls(Path(path).resolve(), weights_sha256(model))

    @classmethod
    def named(cls, about: Mapping[str, Any], folder: Path) -> Base:
        """By the adapter_config.json of a run, where it is now."""
        return cls(base_path(about, folder).resolve(), about["chainrule"]["base_sha256"])


def check_method(method: Method | None, start: object, draft: bool) -> None:
    """A method tunes what is there; a run that keeps an adapter alone must find it again."""
    if method is None:
        return
    if start is None:
        rule = "must have a model to tune: give start"
        raise ConfigError(f"tune: method {method.name} for a new model ({rule})")
    if method.alone and not draft and isinstance(start, Model):
        rule = "must be a path: the run keeps the adapter alone, and finds the rest there"
        raise ConfigError(f"tune: start is a {type(start).__name__} ({rule})")


def weights_sha256(model: Model) -> str:
    """SHA-256 of the names, shapes and values of all weights, in the order of their names."""
    total = hashlib.sha256()
    for name, array in sorted(lazy_arrays(model).items()):
        total.update(f"{name} {array.shape}\0".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def own_arrays(model: Model, base: Model) -> dict[str, Array]:
    """The arrays of a tuned model that are not those of its base, by name: all that learns, and what has changed."""
    of_base, tables = _by_name(base, model), _tables(model)
    learning = {name for name, param in model.named_parameters() if param.requires_grad}
    return {
        name: array
        for name, array in model.arrays().items()
        if name in learning or not _same(array, of_base.get(base_name(name)), tables.get(name))
    }


def _tables(model: Model) -> dict[str, Array]:
    """The names of matrices of which a few rows learn, and these rows."""
    found = ((path, layer) for path, layer in parts(model).items() if isinstance(layer, TokenRows))
    return {f"{path}.base.weight": layer.tokens for path, layer in found}


def _by_name(base: Model, model: Model | type[Model]) -> dict[str, Array]:
    """The arrays of the base by their names in a model with its body."""
    kind = model if isinstance(model, type) else type(model)
    inside = isinstance(base, BERT) and kind is not BERT
    return {f"bert.{name}" if inside else name: array for name, array in lazy_arrays(base).items()}


def _same(array: Array, other: Array | None, aside: Array | None = None) -> bool:
    """Equal, but for the rows `aside`, which the other one may lack."""
    if other is None or aside is None:
        return other is not None and np.array_equal(array, other)
    counted = np.ones(len(array), bool)
    counted[aside] = False
    known = counted[: len(other)]
    return not counted[len(other) :].any() and np.array_equal(array[: len(other)][known], other[known])


def description(model: Model, method: Method, base: Base, folder: Path) -> dict[str, Any]:
    """The content of adapter_config.json but for what is PEFT's."""
    near = os.path.relpath(base.path, folder.resolve())  # where it is if both were moved together
    mark = POSITIONS if _has_positions(model, method) else {}
    return {"chainrule": method.to_dict() | {"base_sha256": base.sha256, "base_near": near} | mark}


def _has_positions(model: Model, method: Method) -> bool:
    """It is tuned by a prefix that takes positions, as one in front of a GPT does."""
    return isinstance(method, Prefix) and model.context < int(model.config.block_size)


def _check_positions(model: Model, method: Method, about: Mapping[str, Any], folder: Path) -> None:
    """Without its mark a prefix of ours has learned beside tokens at other positions."""
    ours = _ours(about)
    if ours and _has_positions(model, method) and not POSITIONS.items() <= ours.items():
        raise CheckpointError(f"{folder}: tuned by a version whose prefix took no positions (tune it again)")


def build(
    config: Mapping[str, Any],
    arrays: Mapping[str, Array],
    about: Mapping[str, Any],
    folder: Path,
    *,
    to_decode: bool = False,
) -> tuple[Model, Method, Base]:
    """The tuned model of a checkpoint, in evaluation mode: the base with what the adapter's files hold.

    With `to_decode` the weights of a language model stay in their files, as in `Opened.to_decode`.
    """
    base, model_of_base, _ = open_base(about, folder, to_decode=to_decode)
    kind, sizes = described(config)
    method = peft.method_of(about)
    if method is None:
        raise CheckpointError(f"{folder}: {CONFIG} says no method (must be as it was saved)")
    there = _by_name(model_of_base, kind)
    check_size(kind.n_params(sizes), {**there, **arrays})
    in_files = to_decode and issubclass(kind, LanguageModel)
    with stored_parameters() if in_files else unfilled():
        model = method.apply(kind(sizes))
    _check_positions(model, method, about, folder)
    own, tables = peft.from_files(model, method, arrays), _tables(model)
    values: dict[str, Array] = {}
    params, given_up = dict(model.named_parameters()), {id(array): array for array in there.values()}
    for name, array in model.arrays().items():
        shape = array.shape
        value = own.pop(name, None)
        value = there.get(base_name(name)) if value is None else value
        if (
            value is not None and name in tables and len(value) < len(array)
        ):  # its rows of new tokens come alone
            array, new = array[: len(value)], len(array) - len(value)
            value = value if np.isin(np.arange(new) + len(value), tables[name]).all() else value[:0]
        if value is None or np.shape(value) != array.shape:
            found = (
                "is not there" if value is None else f"has shape {np.shape(value)}, must have {array.shape}"
            )
            raise CheckpointError(
                f"{folder}: {name} {found} (the adapter does not fit its base, {base.path})"
            )
        if in_files:
            values[name] = (
                value if array.shape == shape else later(partial(longer, shape[0]), value, shape=shape)
            )
        elif (
            name in params
            and _can_take(value, params[name].array)
            and given_up.pop(id(value), None) is not None
        ):
            params[name].array = value  # of the base, which nobody else has: a copy would be for nothing
        else:
            array[...] = value
    if own:
        raise CheckpointError(
            f"{folder}: {next(iter(own))} is unknown (the adapter does not fit its base, {base.path})"
        )
    if in_files:
        attach_tuned(model, values)
    for layer in parts(model).values():
        if isinstance(layer, TokenRows) and not in_files:
            layer.table()
    return model.eval(), method, base


def _can_take(value: Any, array: Array) -> bool:
    """A parameter can have this array in place of its own."""
    plain = isinstance(value, np.ndarray) and value.flags.writeable and value.flags.c_contiguous
    return plain and value.dtype == array.dtype and value.shape == array.shape


def open_base(
    about: Mapping[str, Any], folder: Path, *, to_decode: bool = False
) -> tuple[Base, Model, Tokenizer]:
    """The base that an adapter's config names, checked against its hash if there is one.

    If it is tuned itself, what it has learned is added into its weights, as it was when the run began.
    """
    path, wanted = base_path(about, folder), _ours(about).get("base_sha256")
    tuned, tokenizer = _loaded(path, folder, to_decode)
    model = merged(tuned)
    found = weights_sha256(model)
    if wanted is not None and found != wanted:
        raise CheckpointError(
            f"{folder}: its base {path} has changed since the run began (SHA-256 of the weights {found[:12]}, was "
            f"{str(wanted)[:12]}; put the old one back, or tune the new one)"
        )
    return Base(path.resolve(), found), model, tokenizer


def _loaded(path: Path, folder: Path, to_decode: bool) -> tuple[Model, Tokenizer]:
    """The base of an adapter, which may have a base too, but not one that is opened already."""
    from chainrule.runs.load import open_model  # which knows adapters

    chain = (*_chain.get(), folder.resolve())
    if path.resolve() in chain:
        raise CheckpointError(f"{folder}: its base {path} has it as a base (must be a model of its own)")
    token = _chain.set(chain)
    try:
        return open_model(path, to_decode=to_decode)[:2]
    finally:
        _chain.reset(token)


def _ours(about: Mapping[str, Any]) -> Mapping[str, Any]:
    found = about.get(peft.OURS)
    return found if isinstance(found, dict) else {}


def base_path(about: Mapping[str, Any], folder: Path) -> Path:
    """Where the base that an adapter's config names is now: there, or as near as it was if both were moved."""
    ours, named = _ours(about), about.get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        raise FormatError(f"{folder}: {CONFIG} names no base (must have base_model_name_or_path)")
    places = (
        [Path(named), folder / str(ours["base_near"])]
        if "base_near" in ours
        else [Path(named), folder / named]
    )
    path = next((place for place in places if place.exists()), None)
    if path is None:
        raise CheckpointError(
            f"{folder}: its base {named} is not there (put it back: the run holds the adapter alone)"
        )
    return path


def is_adapter(path: Path) -> bool:
    """A directory with an adapter alone, ours or PEFT's."""
    return (
        (path / CONFIG).is_file()
        and not (path / "manifest.json").exists()
        and not (path / "config.json").exists()
    )


def load_adapter(folder: Path, *, to_decode: bool = False) -> tuple[Model, Tokenizer]:
    """The model of a directory with an adapter alone, and the tokenizer of its base; `to_decode` as in `build`."""
    about = read_config(folder)
    _, model, tokenizer = open_base(about, folder, to_decode=to_decode)
    arrays = safetensors.read(folder / WEIGHTS)
    method = peft.method_of(about) or peft.foreign_method(model, about, arrays)
    if is_stored(model):
        there = lazy_arrays(model)
        with stored_parameters():
            model = method.apply(type(model)(model.config))
        _check_positions(model, method, about, folder)
        names = {name: base_name(name) for name in model.arrays()}
        values = {name: there[base] for name, base in names.items() if base in there}
        values |= peft.from_files(model, method, arrays)
        model.check_state(values)
        attach_tuned(model, values)
    else:
        method.apply(model)
        _check_positions(model, method, about, folder)
        model.load(model.state() | peft.from_files(model, method, arrays))
    return model.eval(), tokenizer


class Merged(NamedTuple):
    """A tuned model with what it learned added into its weights."""

    model: Model
    tokenizer: Tokenizer
    tuned: Model
    """As it was."""
    changed: tuple[str, ...]
    """The weights that are not those of the base."""


def merge(path: Path) -> Merged:
    """The plain model that computes what a tuned one does; refused if there is nothing to merge."""
    from chainrule.runs.load import open_model, run_of

    loaded = open_model(path)
    about = (
        loaded.checkpoint.adapter_config
        if loaded.checkpoint
        else read_config(path)
        if is_adapter(path)
        else {}
    )
    if not about:
        raise ConfigError(f"merge: {path} holds whole weights, no adapter (export writes them as they are)")
    _, base, _ = open_base(about, run_of(path))
    model, there = merged(loaded.model), _by_name(base, loaded.model)
    changed = tuple(name for name, array in model.arrays().items() if not _same(array, there.get(name)))
    if not changed:
        rule = "must change some: train it first, or take a later checkpoint"
        raise ConfigError(f"merge: the adapter of {path} changes no weight of its base ({rule})")
    return Merged(model, loaded.tokenizer, loaded.model, changed)


def read_config(folder: Path) -> dict[str, Any]:
    """The content of adapter_config.json."""
    try:
        found = json.loads(read_bytes(folder / CONFIG))
    except ValueError as error:
        raise FormatError(f"{folder / CONFIG}: is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise FormatError(f"{folder / CONFIG}: holds a {type(found).__name__} (must be an object)")
    return found
