"""Models, one file each."""

from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.grams import Terminals
from chainrule.models.language_model import IGNORE, LanguageModel
from chainrule.models.llama import Llama, LlamaConfig
from chainrule.models.ngram import NGram
from chainrule.models.smoothing import Additive, GoodTuring, KneserNey

__all__ = [
    "GPT",
    "IGNORE",
    "Additive",
    "GPTConfig",
    "GoodTuring",
    "KneserNey",
    "LanguageModel",
    "Llama",
    "LlamaConfig",
    "NGram",
    "Terminals",
]
