"""A run on disk: `folder` names its files, `run` makes, trains and resumes it, `checkpoint` saves and finds states.

`load` gives the model of a run, `warm_start` reads initial weights, `replay` repeats a step; `history`, `review` and
`plot` read the log.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.runs import compare, seeds
    from chainrule.runs.checkpoint import Checkpoint
    from chainrule.runs.folder import RunFolder
    from chainrule.runs.history import History, histories
    from chainrule.runs.load import load, load_language_model, load_vectors
    from chainrule.runs.plot import loss_curve
    from chainrule.runs.replay import Replay, replay
    from chainrule.runs.run import Run

__all__ = [
    "Checkpoint", "History", "Replay", "Run", "RunFolder", "compare", "histories", "load", "load_language_model",
    "load_vectors", "loss_curve", "replay", "seeds"
]  # fmt: skip

lazy.names(
    __name__,
    rooms="baseline checkpoint compare environment folder history plot progress review run seeds warm_start",
    checkpoint="Checkpoint",
    folder="RunFolder",
    history="History histories",
    load="load load_language_model load_vectors",
    plot="loss_curve",
    replay="Replay replay",
    run="Run",
)
