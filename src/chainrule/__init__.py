"""Chainrule: the whole transformer stack from scratch, every gradient derived by hand and checked.

>>> import chainrule as cr
>>> x = cr.Tensor([[1.0, 2.0]], requires_grad=True)
>>> cr.ops.softmax(x).max().backward()
"""

from __future__ import annotations

import importlib
from os import PathLike
from typing import TYPE_CHECKING, Any

from chainrule import ops
from chainrule.autograd import (
    Op,
    Param,
    Parameters,
    Tensor,
    backend,
    capture,
    checkpoint,
    gradcheck,
    gradcheck_model,
    no_grad,
    precision,
    scope,
)
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
from chainrule.native import get_threads, set_threads
from chainrule.random import seed

if TYPE_CHECKING:
    from chainrule import (
        data,
        foundations,
        generate,
        inspect,
        io,
        models,
        nn,
        optim,
        scalar,
        scaling,
        text,
        train,
    )
    from chainrule.models import Model
    from chainrule.text import Tokenizer

__version__ = "0.1.0"

# Rooms opened on first use, so that `import chainrule` costs little more than NumPy's own import.
_LAZY = {
    "data",
    "foundations",
    "generate",
    "inspect",
    "io",
    "models",
    "nn",
    "optim",
    "scalar",
    "scaling",
    "text",
    "train",
}


def load(path: str | PathLike[str]) -> tuple[Model, Tokenizer]:
    """The model and the tokenizer of a run, a checkpoint, a Hugging Face directory, a .gguf or a llama2.c .bin file.

    A directory may also hold nothing but one such file.

    >>> model, tokenizer = load("runs/demo")  # doctest: +SKIP
    """
    from chainrule.train import load_any

    return load_any(path)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"chainrule.{name}")
    raise AttributeError(f"module 'chainrule' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY])


__all__ = [
    "ChainruleError",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "FormatError",
    "GradientError",
    "GraphError",
    "Op",
    "Param",
    "Parameters",
    "ShapeError",
    "Tensor",
    "backend",
    "capture",
    "checkpoint",
    "data",
    "foundations",
    "generate",
    "get_threads",
    "gradcheck",
    "gradcheck_model",
    "inspect",
    "io",
    "load",
    "models",
    "nn",
    "no_grad",
    "ops",
    "optim",
    "precision",
    "scalar",
    "scaling",
    "scope",
    "seed",
    "set_threads",
    "text",
    "train",
]
