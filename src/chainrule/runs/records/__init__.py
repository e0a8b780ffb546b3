"""What a run has written down, read again: `environment` is what it was made with, `history` the whole of its folder.

`follow` reads a log that is being written, `plot` draws it, `review` rates it; `compare` and `seeds` set several runs
side by side.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.runs.records.history import History, histories
    from chainrule.runs.records.plot import loss_curve

__all__ = ["History", "histories", "loss_curve"]

lazy.names(
    __name__,
    rooms="compare environment follow history plot review seeds",
    history="History histories",
    plot="loss_curve",
)
