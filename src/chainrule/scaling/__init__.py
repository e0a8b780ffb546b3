"""What a model costs: parameters, FLOPs and memory, counted before it is made; time budgets; the ladder of models.

>>> import chainrule as cr
>>> from chainrule.scaling import Batch, flops, total
>>> total(flops(cr.models.GPT.abstract(cr.models.GPTConfig()), Batch(rows=32, tokens=128))).forward
7251951616
"""

from chainrule import lazy
from chainrule.autograd.types import Work
from chainrule.trace.cost import COMPONENTS
from chainrule.trace.count import (
    Batch,
    flops,
    kept_for_backward,
    lora,
    parameters,
    running_memory,
    step_batch,
    step_graph,
    total,
    training_memory,
)

__all__ = [
    "COMPONENTS", "Batch", "Work", "flops", "kept_for_backward", "lora", "parameters", "running_memory",
    "step_batch", "step_graph", "total", "training_memory"
]  # fmt: skip

lazy.names(__name__)
