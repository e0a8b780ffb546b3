"""The base of a tuned model: found by its path and the SHA-256 of its weights, which adapter_config.json names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import CheckpointError, FormatError
from chainrule.io import peft
from chainrule.io.files import read_json
from chainrule.io.opened import lazy_arrays
from chainrule.models import BERT, Model
from chainrule.models.tuning.parts import merged
from chainrule.text import Tokenizer

CONFIG = "adapter_config.json"
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


def weights_sha256(model: Model) -> str:
    """SHA-256 of the names, shapes and values of all weights, in the order of their names."""
    total = hashlib.sha256()
    for name, array in sorted(lazy_arrays(model).items()):
        total.update(f"{name} {array.shape}\0".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def open_base(
    about: Mapping[str, Any], folder: Path, *, to_decode: bool = False
) -> tuple[Base, Model, Tokenizer]:
    """The base that an adapter's config names, checked against its hash if there is one.

    If it is tuned itself, what it has learned is added into its weights, as it was when the run began.
    """
    path, wanted = base_path(about, folder), ours_of(about).get("base_sha256")
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


def base_path(about: Mapping[str, Any], folder: Path) -> Path:
    """Where the base that an adapter's config names is now: there, or as near as it was if both were moved."""
    ours, named = ours_of(about), about.get("base_model_name_or_path")
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


def ours_of(about: Mapping[str, Any]) -> Mapping[str, Any]:
    found = about.get(peft.OURS)
    return found if isinstance(found, dict) else {}


def arrays_by_name(base: Model, model: Model | type[Model]) -> dict[str, Array]:
    """The arrays of the base by their names in a model with its body."""
    kind = model if isinstance(model, type) else type(model)
    inside = isinstance(base, BERT) and kind is not BERT
    return {f"bert.{name}" if inside else name: array for name, array in lazy_arrays(base).items()}


def same(array: Array, other: Array | None, aside: Array | None = None) -> bool:
    """Equal, but for the rows `aside`, which the other one may lack."""
    if other is None or aside is None:
        return other is not None and np.array_equal(array, other)
    counted = np.ones(len(array), bool)
    counted[aside] = False
    known = counted[: len(other)]
    return not counted[len(other) :].any() and np.array_equal(array[: len(other)][known], other[known])


def read_config(folder: Path) -> dict[str, Any]:
    """The content of adapter_config.json."""
    return dict(read_json(folder / CONFIG))
