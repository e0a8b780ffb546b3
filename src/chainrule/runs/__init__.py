"""A run on disk: `folder` names its files, `run` makes and resumes it, `stretch` trains it, `checkpoint` saves states.

`load` gives the model of a run, `warm_start` reads initial weights, `replay` repeats a step; `records` is what a run
has written down, and `tuned` what a run is that tunes a base.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.runs.checkpoint import Checkpoint
    from chainrule.runs.folder import RunFolder
    from chainrule.runs.load import load, load_language_model, load_vectors
    from chainrule.runs.records import compare, seeds
    from chainrule.runs.records.history import History, histories
    from chainrule.runs.records.plot import loss_curve
    from chainrule.runs.replay import Replay, replay
    from chainrule.runs.run import Run

__all__ = [
    "Checkpoint", "History", "Replay", "Run", "RunFolder", "compare", "histories", "load", "load_language_model",
    "load_vectors", "loss_curve", "replay", "seeds"
]  # fmt: skip

lazy.names(
    __name__,
    rooms="baseline checkpoint folder progress records run tuned warm_start",
    checkpoint="Checkpoint",
    folder="RunFolder",
    load="load load_language_model load_vectors",
    records="History compare histories loss_curve seeds",
    replay="Replay replay",
    run="Run",
)
