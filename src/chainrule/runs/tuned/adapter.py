"""A tuned model on disk: what its method has trained, without the base, which is named by its path and its hash.

    adapter_model.safetensors     what learned, rows of new tokens among it, and what else differs from the base
    adapter_config.json           the method, and the base: its path and the SHA-256 of its weights

A checkpoint of such a run has these two in place of model.safetensors. A directory with them alone is read too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.autograd.types import Array, Shape
from chainrule.errors import CheckpointError, ConfigError
from chainrule.io import peft, safetensors
from chainrule.io.hf.architectures import check_size
from chainrule.io.lazy import later
from chainrule.io.opened import is_stored, lazy_arrays
from chainrule.models import LanguageModel, Model
from chainrule.models.registry import described
from chainrule.models.tuning import Method, Prefix
from chainrule.models.tuning.parts import base_name, parts
from chainrule.nn import TokenRows
from chainrule.nn.init import stored_parameters, unfilled
from chainrule.runs.tuned.base import CONFIG, Base, arrays_by_name, open_base, ours_of, read_config, same
from chainrule.runs.tuned.stored import attach_tuned, longer
from chainrule.text import Tokenizer

WEIGHTS = "adapter_model.safetensors"
POSITIONS = {"positions": "first"}  # the mark of a prefix that takes some


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


def own_arrays(model: Model, base: Model) -> dict[str, Array]:
    """The arrays of a tuned model that are not those of its base, by name: all that learns, and what has changed."""
    of_base, tables = arrays_by_name(base, model), _tables(model)
    learning = {name for name, param in model.named_parameters() if param.requires_grad}
    return {
        name: array
        for name, array in model.arrays().items()
        if name in learning or not same(array, of_base.get(base_name(name)), tables.get(name))
    }


def _tables(model: Model) -> dict[str, Array]:
    """The names of matrices of which a few rows learn, and these rows."""
    found = ((path, layer) for path, layer in parts(model).items() if isinstance(layer, TokenRows))
    return {f"{path}.base.weight": layer.tokens for path, layer in found}


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
    ours = ours_of(about)
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
    there = arrays_by_name(model_of_base, kind)
    check_size(kind.n_params(sizes), {**there, **arrays})
    in_files = to_decode and issubclass(kind, LanguageModel)
    with stored_parameters() if in_files else unfilled():
        model = method.apply(kind(sizes))
    _check_positions(model, method, about, folder)

    def misfit(said: str) -> CheckpointError:
        return CheckpointError(f"{folder}: {said} (the adapter does not fit its base, {base.path})")

    fitting = _fitting(model, peft.from_files(model, method, arrays), there, misfit)
    if in_files:
        shapes = {name: array.shape for name, array in model.arrays().items()}
        attach_tuned(model, {name: _whole(value, shapes[name]) for name, _, value in fitting})
    else:
        _fill(model, fitting, there)
    return model.eval(), method, base


def _fitting(
    model: Model, own: dict[str, Any], there: Mapping[str, Any], misfit: Callable[[str], CheckpointError]
) -> Iterator[tuple[str, Array, Array]]:
    """Of each array its name, what of it is to be filled, and with what: by the adapter's files, or else the base."""
    tables = _tables(model)
    for name, array in model.arrays().items():
        value = own.pop(name) if name in own else there.get(base_name(name))
        if value is not None and name in tables and len(value) < len(array):
            array, new = array[: len(value)], len(array) - len(value)  # its rows of new tokens come alone
            value = value if np.isin(np.arange(new) + len(value), tables[name]).all() else value[:0]
        if value is None:
            raise misfit(f"{name} is not there")
        if np.shape(value) != array.shape:
            raise misfit(f"{name} has shape {np.shape(value)}, must have {array.shape}")
        yield name, array, value
    if own:
        raise misfit(f"{next(iter(own))} is unknown")


def _whole(value: Any, shape: Shape) -> Any:
    """An array in its file, with rows for new tokens if it lacks them."""
    return value if value.shape == shape else later(partial(longer, shape[0]), value, shape=shape)


def _fill(model: Model, fitting: Iterable[tuple[str, Array, Array]], there: Mapping[str, Array]) -> None:
    """Fill the arrays of a model; what nobody else has, of the base, is taken as it is: a copy would be for nothing."""
    params, given_up = dict(model.named_parameters()), {id(array): array for array in there.values()}
    for name, array, value in fitting:
        taken = name in params and _can_take(value, params[name].array)
        if taken and given_up.pop(id(value), None) is not None:
            params[name].array = value
        else:
            array[...] = value
    for layer in parts(model).values():
        if isinstance(layer, TokenRows):
            layer.table()


def _can_take(value: Any, array: Array) -> bool:
    """A parameter can have this array in place of its own."""
    plain = isinstance(value, np.ndarray) and value.flags.writeable and value.flags.c_contiguous
    return plain and value.dtype == array.dtype and value.shape == array.shape


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
