"""A model whose weights are still in its file: what `load` reads, and what `import` converts array by array."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd import Param
from chainrule.autograd.stored import StoredParam
from chainrule.errors import FormatError
from chainrule.io.binary import let_go
from chainrule.io.lazy import FLOAT32, Arrays, Lazy, Matrix, later
from chainrule.models import LanguageModel, Model
from chainrule.nn.init import stored_parameters, unfilled
from chainrule.text import Tokenizer


class Opened(NamedTuple):
    """A model of a file."""

    model: Model
    """Its parameters have shapes and no values."""
    arrays: Arrays
    """The values by our names in float32, each read or computed when it is used; they fit the model."""
    tokenizer: Tokenizer | None = None

    @classmethod
    def of(cls, kind: type[Model], config: Any, arrays: Arrays, tokenizer: Tokenizer | None = None) -> Opened:
        """A model of this class and size; arrays that do not fit it are refused."""
        model = kind.abstract(config)
        model.check_state(arrays)
        return cls(model, {name: _float32(name, array) for name, array in arrays.items()}, tokenizer)

    def load(self) -> Model:
        """The model with its values, in evaluation mode."""
        with unfilled():
            model = type(self.model)(self.model.config)
        for name, array in model.arrays().items():
            array[...] = self.arrays[name]
            let_go()  # of the pages of the file: they hold what the array holds now
        for _, param in model.named_parameters():
            param.version += 1
        return model.eval()

    def to_decode(self) -> Model:
        """The model for a decoder, which packs its weights: a language model reads them when they are used, and they
        are never in memory all at once. Those that are not finite are refused then. Other models are loaded."""
        if not isinstance(self.model, LanguageModel):
            return self.load()
        with stored_parameters():
            model = type(self.model)(self.model.config)
        attach(model, self.arrays)
        return model.eval()


def attach(model: Model, arrays: Mapping[str, Matrix]) -> None:
    """The stored parameters of a model read their values from arrays, by name; buffers are read now."""
    for name, param in model.named_parameters():
        assert isinstance(param, StoredParam)
        array: Any = arrays[name]
        param.read = partial(_read, name, array)
        if isinstance(array, Lazy):
            param.format, param.read_blocks = array.weight_format, partial(_read_blocks, name, array)
    for path, layer in model.named_layers():
        for name in layer.buffers:
            setattr(layer, name, np.array(arrays[f"{path}.{name}".lstrip(".")]))


def lazy_arrays(model: Model) -> Arrays:
    """The arrays of a model by name; those that are in a file are read when they are used."""
    if not is_stored(model):
        return model.arrays()
    stored: Any = {name: OfParam(param) for name, param in model.named_parameters()}
    return stored | dict(model.named_buffers())


class OfParam(Lazy):
    """The values of a parameter, in the format in which its file has them."""

    def __init__(self, param: Param) -> None:
        super().__init__(param.shape, partial(getattr, param, "array"))
        self.param = param

    @property
    def weight_format(self) -> str | None:
        return self.param.stored_format if isinstance(self.param, StoredParam) else None

    def blocks(self) -> Matrix | None:
        stored = isinstance(self.param, StoredParam) and self.param.read_blocks
        return stored() if stored else None


def is_stored(model: Model) -> bool:
    """True for a model of `to_decode` whose weights are in its file."""
    return any(isinstance(param, StoredParam) for _, param in model.named_parameters())


def _read(name: str, array: Matrix) -> Matrix:
    """The values, in the mapped file if they are there as they should be: it leaves memory when the array does."""
    found = finite(name, np.asarray(array, FLOAT32)).view()
    weakref.finalize(found, let_go).atexit = False
    return found


def _read_blocks(name: str, array: Lazy) -> Matrix | None:
    """The bytes of its blocks, (rows, bytes), in the mapped file: it leaves memory when they do"""
    if (found := array.blocks()) is None:
        return None
    for half in {"scale", "least"} & set(found.dtype.names or ()):
        finite(name, found[half].astype(FLOAT32), "scales")
    found = found.view(np.uint8).view()
    weakref.finalize(found, let_go).atexit = False
    return found


def finite(name: str, array: Matrix, what: str = "values") -> Matrix:
    """The array, if all of it is finite; its sum says so in one pass and without memory, unless it overflows"""
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not np.isfinite(total) and not np.isfinite([array.min(), array.max()]).all():
        wrong = array.size - np.count_nonzero(np.isfinite(array))
        rule = "must be none: get the file again, or earlier weights of its training"
        raise FormatError(f"{name}: {wrong:,} of {array.size:,} {what} are NaN or infinite ({rule})")
    return array


def _float32(name: str, array: Matrix) -> Matrix:
    """The array in float32; integers are refused, since without their scale they are not the weights."""
    if array.dtype.kind != "f":
        raise FormatError(
            f"{name} is of {array.dtype} (must be floats: convert quantized weights to float16)"
        )
    return array if array.dtype == FLOAT32 else later(lambda found: found.astype(FLOAT32), array)
