"""Chainrule: the whole transformer stack from scratch, every gradient derived by hand and checked.

>>> import chainrule as cr
>>> x = cr.Tensor([[1.0, 2.0]], requires_grad=True)
>>> cr.ops.softmax(x).max().backward()
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

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
    from chainrule.autograd import Op, Param, Parameters, Tensor, backend, no_grad, precision, scope
    from chainrule.autograd.capture import capture
    from chainrule.autograd.gradcheck import gradcheck, gradcheck_model
    from chainrule.autograd.recompute import checkpoint
    from chainrule.models import Model
    from chainrule.native import get_threads, set_threads
    from chainrule.random import seed
    from chainrule.text import Tokenizer

__version__ = "0.1.0"


def load(path: str | PathLike[str]) -> tuple[Model, Tokenizer]:
    """The model and the tokenizer of a run, a checkpoint, a Hugging Face directory, a .gguf or a llama2.c .bin file.

    A directory that holds a single such file works too.

    >>> model, tokenizer = load("runs/demo")  # doctest: +SKIP
    """
    from chainrule import runs

    return runs.load(path)


# Imported on first use, so that the command line starts fast.
__getattr__ = lazy.names(
    __name__,
    "autograd data doctor foundations generate inspect io lessons models native nn ops optim random runs scalar "
    "scaling tasks text train",
    autograd="Op Param Parameters Tensor backend capture checkpoint gradcheck gradcheck_model no_grad precision scope",
    native="get_threads set_threads",
    random="seed",
)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "ChainruleError", "CheckpointError", "ConfigError", "DataError", "FormatError", "GradientError",
    "GraphError", "Op", "Param", "Parameters", "ShapeError", "Tensor", "backend", "capture", "checkpoint",
    "data", "doctor", "foundations", "generate", "get_threads", "gradcheck", "gradcheck_model", "inspect",
    "io", "lessons", "load", "models", "nn", "no_grad", "ops", "optim", "precision", "runs", "scalar",
    "scaling", "scope", "seed", "set_threads", "tasks", "text", "train"
]  # fmt: skip
