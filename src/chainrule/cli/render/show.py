"""Words and numbers that several commands print."""

from __future__ import annotations

import math
import os
import shutil
import sys

from chainrule.models import Model
from chainrule.runs import Run
from chainrule.tasks.task import Text
from chainrule.text import CharTokenizer

SIZES = {
    "n_layer": "{} layer{s}",
    "n_head": "{} head{s}",
    "n_embd": "width {}",
    "n_hidden": "hidden width {}",
    "block_size": "context {}",
}


def size(model: Model) -> str:
    """One line about a model."""
    c = model.config
    sizes = {words: getattr(c, name, None) for name, words in SIZES.items()}
    said = [words.format(n, s="s" * (n != 1)) for words, n in sizes.items() if n]
    return f"{type(model).__name__} with {', '.join(said)}: {model.count():,} parameters"


def steps(n: int) -> str:
    """1 step, 2,000 steps"""
    return f"{n:,} step{'s' * (n != 1)}"


def bits(run: Run, nats: float) -> str:
    """A loss per token in both units; tokens of several characters are compared by the byte."""
    if isinstance(run.material, Text) and isinstance(run.tokenizer, CharTokenizer):
        return f"{nats:.4f} nats = {nats / math.log(2):.4f} bits per character"
    found = run.material.measures(nats, run.trainer.exam)
    others = [f"{value:.4f} {name.replace('_', ' ')}" for name, value in found.items()]
    return " = ".join([f"{nats:.4f} nats", *others])


def command_line() -> str:
    """How the person can call this program again: by name if it is on the path, else as it was called now."""
    if shutil.which("chainrule"):
        return "chainrule"
    called = os.path.relpath(sys.argv[0])
    return f"{os.path.relpath(sys.executable)} -m chainrule.cli" if called.endswith(".py") else called
