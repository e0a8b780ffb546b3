"""Ways to tune a trained model: one small class per method.

`method` is their base, `places` knows where the models have what they change, `parts` finds, swaps and merges what they
put there, `registry` lists them by name, `advise` chooses one.
"""

from chainrule import lazy
from chainrule.models.tuning.advise import Advice, Needs, advise, storage
from chainrule.models.tuning.chosen import BitFit, Full, Head
from chainrule.models.tuning.inserted import BottleneckAdapter, Prefix, Prompt
from chainrule.models.tuning.lora import LoRA
from chainrule.models.tuning.method import Method
from chainrule.models.tuning.parts import Adapters, load_trained, merged, merged_state, strip, trained
from chainrule.models.tuning.registry import METHODS, method_class, method_of

__all__ = [
    "METHODS", "Adapters", "Advice", "BitFit", "BottleneckAdapter", "Full", "Head", "LoRA", "Method", "Needs", "Prefix",
    "Prompt", "advise", "load_trained", "merged", "merged_state", "method_class", "method_of", "storage", "strip",
    "trained"
]  # fmt: skip

lazy.names(__name__)
