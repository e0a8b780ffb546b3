"""The weights of any model of one's own as one safetensors file: names and arrays, no code."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from chainrule import files
from chainrule.errors import ConfigError, kind_of
from chainrule.io import safetensors
from chainrule.nn import Layer

L = TypeVar("L", bound=Layer)


def save(model: Layer | Mapping[str, npt.NDArray[Any]], path: str | PathLike[str]) -> None:
    """Write the parameters and buffers of a layer, or a `state_dict()`, to a safetensors file, all or nothing.

    >>> save(model, "model.safetensors")  # doctest: +SKIP
    """
    if not isinstance(model, Layer | Mapping):
        raise ConfigError(f"save: got {kind_of(model)} (must be a layer or its state_dict())")
    if not isinstance(path, str | PathLike):
        raise ConfigError(
            f"save: got {type(path).__name__} as a path (call: save(model, 'model.safetensors'))"
        )
    arrays = model.arrays() if isinstance(model, Layer) else model
    plain = {name: np.asarray(getattr(array, "array", array)) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.newbyteorder("<") not in safetensors.NAMES:
            raise ConfigError(f"save: {name} is of dtype {array.dtype} (must be numbers)")
    with files.new_file(Path(path), replace=True) as file:
        safetensors.write(file, plain)


def load_into(path: str | PathLike[str], model: L) -> L:
    """Read a file of `save` into a model that has the same names and shapes; returns the model."""
    if not isinstance(model, Layer):
        raise ConfigError(f"load: got {kind_of(model)} (must be a layer to load the weights into)")
    model.load({name: np.asarray(array) for name, array in safetensors.read(Path(path)).items()})
    return model
