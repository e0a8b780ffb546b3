"""Chainrule: the whole transformer stack from scratch, every gradient derived by hand and checked.

>>> import chainrule as cr
>>> x = cr.Tensor([[1.0, 2.0]], requires_grad=True)
>>> cr.ops.softmax(x).max().backward()
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, TypeVar, overload

from chainrule import lazy
from chainrule.errors import (
    ChainruleError,
    CheckpointError,
    ConfigError,
    DataError,
    FormatError,
    GradientError,
    GraphError,
    ShapeError,
)

if TYPE_CHECKING:
    from chainrule import (
        align,
        data,
        doctor,
        foundations,
        generate,
        inspect,
        io,
        lessons,
        models,
        nn,
        ops,
        optim,
        pipeline,
        runs,
        scalar,
        scaling,
        tasks,
        text,
        train,
    )
    from chainrule.autograd import (
        Op,
        Param,
        Parameters,
        Tensor,
        arange,
        backend,
        no_grad,
        ones,
        precision,
        randn,
        scope,
        zeros,
    )
    from chainrule.autograd.capture import capture
    from chainrule.autograd.gradcheck import gradcheck, gradcheck_model
    from chainrule.autograd.intervene import intervene
    from chainrule.autograd.recompute import checkpoint
    from chainrule.autograd.types import Array
    from chainrule.models import Model, compile
    from chainrule.native import get_threads, set_threads
    from chainrule.random import seed
    from chainrule.text import Tokenizer

L = TypeVar("L", bound="nn.Layer")

__version__ = "0.1.0"


@overload
def load(path: str | PathLike[str]) -> tuple[Model, Tokenizer]: ...
@overload
def load(path: str | PathLike[str], model: L) -> L: ...
def load(path: str | PathLike[str], model: L | None = None) -> tuple[Model, Tokenizer] | L:
    """The model and the tokenizer of a run, a checkpoint, a Hugging Face directory, a .gguf or a llama2.c .bin file.

    A directory that holds a single such file works too. With a `model` of one's own, the weights that `save` wrote are
    read into it; no code is ever loaded.

    >>> model, tokenizer = load("runs/demo")  # doctest: +SKIP
    >>> load("model.safetensors", model)  # doctest: +SKIP
    """
    if model is not None:
        from chainrule.io.weights import load_into

        return load_into(path, model)
    from chainrule import runs

    return runs.load(path)


def save(model: nn.Layer | Mapping[str, Array], path: str | PathLike[str]) -> None:
    """Write the weights of any layer, or a `state_dict()`, to a safetensors file; `load(path, model)` reads them.

    >>> save(model, "model.safetensors")  # doctest: +SKIP
    """
    from chainrule.io import weights

    weights.save(model, path)


# Imported on first use, so that the command line starts fast.
lazy.names(
    __name__,
    "align autograd data doctor foundations generate inspect io lessons models native nn ops optim pipeline random "
    "runs scalar scaling tasks text train",
    autograd="Op Param Parameters Tensor arange backend capture checkpoint gradcheck gradcheck_model intervene no_grad "
    "ones precision randn scope zeros",
    models="compile",
    native="get_threads set_threads",
    random="seed",
)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "ChainruleError", "CheckpointError", "ConfigError", "DataError", "FormatError", "GradientError",
    "GraphError", "Op", "Param", "Parameters", "ShapeError", "Tensor", "align", "arange", "backend", "capture",
    "checkpoint", "compile", "data", "doctor", "foundations", "generate", "get_threads", "gradcheck", "gradcheck_model",
    "inspect", "intervene", "io", "lessons", "load", "models", "nn", "no_grad", "ones", "ops", "optim", "pipeline",
    "precision", "randn", "runs", "save", "scalar", "scaling", "scope", "seed", "set_threads", "tasks", "text",
    "train", "zeros"
]  # fmt: skip
