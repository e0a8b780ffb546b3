"""Words and numbers that several commands print."""

from __future__ import annotations

import math
import os
import shutil
import sys

from chainrule.models import GPT


def size(model: GPT) -> str:
    """One line about a model."""
    c = model.config
    return (
        f"GPT with {c.n_layer} layers, {c.n_head} heads, width {c.n_embd}, context {c.block_size}: "
        f"{model.count():,} parameters"
    )


def bits(nats: float) -> str:
    """A loss in both units."""
    return f"{nats:.4f} nats = {nats / math.log(2):.4f} bits per character"


def command_line() -> str:
    """How the person can call this program again: by name if it is on the path, else as it was called now."""
    if shutil.which("chainrule"):
        return "chainrule"
    called = os.path.relpath(sys.argv[0])
    return f"{os.path.relpath(sys.executable)} -m chainrule.cli" if called.endswith(".py") else called
