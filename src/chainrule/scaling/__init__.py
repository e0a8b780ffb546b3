"""What a model costs: parameters, work and memory by formula, before it is made.

>>> import chainrule as cr
>>> from chainrule.scaling import Batch, flops, parts_of, total
>>> total(flops(parts_of(cr.models.GPTConfig()), Batch(rows=32, tokens=128))).forward
7251951616
"""

from chainrule.scaling.architectures import bert, gpt, llama, parts_of, seq2seq, without_biases
from chainrule.scaling.batch import Batch, Work
from chainrule.scaling.count import (
    COMPONENTS,
    flops,
    kept_for_backward,
    lora,
    parameters,
    running_memory,
    step_batch,
    total,
    training_memory,
)

__all__ = [
    "COMPONENTS",
    "Batch",
    "Work",
    "bert",
    "flops",
    "gpt",
    "kept_for_backward",
    "llama",
    "lora",
    "parameters",
    "parts_of",
    "running_memory",
    "seq2seq",
    "step_batch",
    "total",
    "training_memory",
    "without_biases",
]
