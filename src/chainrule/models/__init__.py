"""Models, one file each."""

from chainrule.models.families import FAMILIES, describe, family, make, rebuild
from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.language_model import IGNORE, LanguageModel
from chainrule.models.llama import Llama, LlamaConfig
from chainrule.models.rnn_lm import GRULM, LSTMLM, RNNLM, RecurrentConfig, RecurrentLM

__all__ = [
    "FAMILIES",
    "GPT",
    "GRULM",
    "IGNORE",
    "LSTMLM",
    "RNNLM",
    "GPTConfig",
    "LanguageModel",
    "Llama",
    "LlamaConfig",
    "RecurrentConfig",
    "RecurrentLM",
    "describe",
    "family",
    "make",
    "rebuild",
]
