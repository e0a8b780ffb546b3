"""Chainrule: the whole transformer stack from scratch, every gradient derived by hand and checked.

>>> import chainrule as cr
>>> x = cr.Tensor([[1.0, 2.0]], requires_grad=True)
>>> cr.ops.softmax(x).max().backward()
"""

from __future__ import annotations

import importlib
from os import PathLike
from typing import TYPE_CHECKING, Any

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
        backend,
        checkpoint,
        no_grad,
        precision,
        scope,
    )
    from chainrule.autograd.capture import capture
    from chainrule.autograd.gradcheck import gradcheck, gradcheck_model
    from chainrule.models import Model
    from chainrule.native import get_threads, set_threads
    from chainrule.random import seed
    from chainrule.text import Tokenizer

__version__ = "0.1.0"

# Imported on first use, so that the command line starts fast.
_LAZY = {
    "autograd",
    "data",
    "doctor",
    "foundations",
    "generate",
    "inspect",
    "io",
    "lessons",
    "models",
    "native",
    "nn",
    "ops",
    "optim",
    "random",
    "runs",
    "scalar",
    "scaling",
    "tasks",
    "text",
    "train",
}
# Public names of these modules, by module.
_HOMES = {
    **dict.fromkeys(("Op", "Param", "Parameters", "Tensor", "backend", "capture", "checkpoint"), "autograd"),
    **dict.fromkeys(("gradcheck", "gradcheck_model", "no_grad", "precision", "scope"), "autograd"),
    **dict.fromkeys(("get_threads", "set_threads"), "native"),
    "seed": "random",
}


def load(path: str | PathLike[str]) -> tuple[Model, Tokenizer]:
    """The model and the tokenizer of a run, a checkpoint, a Hugging Face directory, a .gguf or a llama2.c .bin file.

    A directory that holds a single such file works too.

    >>> model, tokenizer = load("runs/demo")  # doctest: +SKIP
    """
    from chainrule import runs

    return runs.load(path)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"chainrule.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(f"chainrule.{_HOMES[name]}"), name)
        globals()[name] = value  # the next access finds it directly
        return value
    raise AttributeError(f"module 'chainrule' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY})


__all__ = [
    "ChainruleError", "CheckpointError", "ConfigError", "DataError", "FormatError", "GradientError",
    "GraphError", "Op", "Param", "Parameters", "ShapeError", "Tensor", "backend", "capture", "checkpoint",
    "data", "doctor", "foundations", "generate", "get_threads", "gradcheck", "gradcheck_model", "inspect",
    "io", "lessons", "load", "models", "nn", "no_grad", "ops", "optim", "precision", "runs", "scalar",
    "scaling", "scope", "seed", "set_threads", "tasks", "text", "train"
]  # fmt: skip
