"""Words and numbers that several commands print."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import chainrule as cr

SIZES = {
    "n_layer": "{} layer{s}",
    "n_head": "{} head{s}",
    "n_embd": "width {}",
    "n_hidden": "hidden width {}",
    "block_size": "context {}",
}


def size(model: cr.models.Model) -> str:
    """One line about a model."""
    c = model.config
    sizes = {words: getattr(c, name, None) for name, words in SIZES.items()}
    said = [words.format(n, s="s" * (n != 1)) for words, n in sizes.items() if n]
    return f"{type(model).__name__} with {', '.join(said)}: {model.count():,} parameters"


def steps(n: int) -> str:
    """1 step, 2,000 steps"""
    return f"{n:,} step{'s' * (n != 1)}"


def bits(run: cr.runs.Run, nats: float) -> str:
    """A loss in its units."""
    return run.task.loss_in_words(nats, run.trainer.eval_batches)


def used(path: Path) -> None:
    """Say on stderr which checkpoint of a run is used, if it is not the newest."""
    from chainrule.runs.load import steps_in_use

    best, newest = steps_in_use(path) or (0, 0)
    if best != newest:
        said = f"{path}: step {best:,} of {newest:,}, the best by its validation data"
        print(f"{said} (for the last: {cr.runs.RunFolder(path).checkpoint(newest)})", file=sys.stderr)


def command_line(*words: object) -> str:
    """What the person can paste to call this program again, with these words in quotes where a shell needs them.

    It is called by name if it is on the path, else as it was called now.
    """
    if shutil.which("chainrule"):
        program = "chainrule"
    elif sys.argv[0].endswith(".py"):
        program = f"{_short(sys.executable)} -m chainrule.cli"
    else:
        program = _short(sys.argv[0])
    return " ".join([program, *(shlex.quote(str(word)) for word in words)])


def _short(program: str) -> str:
    """A path to paste: seen from here or from the root, whichever is shorter."""
    return shlex.quote(min(os.path.relpath(program), os.path.abspath(program), key=len))
