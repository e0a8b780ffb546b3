"""Optimizers over the flat parameter block, a file for each and its variants; schedules, clipping,
stopping, learning-rate search.

`optimizer` is the base class; `schedules` are functions of the step (`train` chooses one).
"""

from chainrule import lazy
from chainrule.optim.adagrad import AdaGrad, RMSprop
from chainrule.optim.adam import Adam, AdamW
from chainrule.optim.clip import clip_factor, clip_global_norm, clip_value, global_norm
from chainrule.optim.lion import Lion
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.schedules import (
    Schedule,
    constant,
    cosine,
    inverse_sqrt,
    linear,
    step_decay,
    transfer,
    wsd,
)
from chainrule.optim.search import Choice, Sweep, choose, sweep
from chainrule.optim.sgd import SGD, Momentum
from chainrule.optim.stopping import EarlyStopping

__all__ = [
    "SGD", "AdaGrad", "Adam", "AdamW", "Choice", "EarlyStopping", "Lion", "Momentum", "Optimizer", "RMSprop",
    "Schedule", "Sweep", "choose", "clip_factor", "clip_global_norm", "clip_value", "constant", "cosine", "global_norm",
    "inverse_sqrt", "linear", "step_decay", "sweep", "transfer", "wsd"
]  # fmt: skip

lazy.names(__name__)
