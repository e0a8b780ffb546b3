"""Models, one file each."""

from chainrule.models.families import FAMILIES, describe, family, make, rebuild
from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.language_model import IGNORE, LanguageModel
from chainrule.models.llama import Llama, LlamaConfig

__all__ = [
    "FAMILIES",
    "GPT",
    "IGNORE",
    "GPTConfig",
    "LanguageModel",
    "Llama",
    "LlamaConfig",
    "describe",
    "family",
    "make",
    "rebuild",
]
