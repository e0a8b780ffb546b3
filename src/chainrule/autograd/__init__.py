"""The engine: records calls of ops on a tape and replays them in reverse. It knows no op.

`op`, `tape`, `tensor` and `param` are the core; around it gradcheck, recomputation, captures, interventions and
deferred values.
"""

from chainrule import lazy
from chainrule.autograd.capture import Capture, Captured, capture
from chainrule.autograd.create import arange, ones, randn, zeros
from chainrule.autograd.deferred import ValueAndGrad
from chainrule.autograd.entries import EntryCheck, check_entries
from chainrule.autograd.gradcheck import gradcheck, gradcheck_model
from chainrule.autograd.intervene import Interventions, intervene
from chainrule.autograd.mode import backend, enable_grad, no_grad, precision, scope
from chainrule.autograd.op import Example, Op
from chainrule.autograd.param import Param, Parameters
from chainrule.autograd.recompute import checkpoint
from chainrule.autograd.tensor import Tensor, backward

__all__ = [
    "Capture", "Captured", "EntryCheck", "Example", "Interventions", "Op", "Param", "Parameters", "Tensor",
    "ValueAndGrad", "arange", "backend", "backward", "capture", "check_entries", "checkpoint", "enable_grad",
    "gradcheck", "gradcheck_model", "intervene",
    "no_grad", "ones", "precision", "randn", "scope", "zeros"
]  # fmt: skip

lazy.names(__name__)
