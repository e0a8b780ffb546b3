"""Models, one file each."""

from chainrule.models.families import FAMILIES, describe, family, make, rebuild
from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.grams import Terminals
from chainrule.models.language_model import IGNORE, LanguageModel
from chainrule.models.llama import Llama, LlamaConfig
from chainrule.models.mlp_lm import MLPLM, MLPConfig
from chainrule.models.neural_ngram import NeuralNGram, NeuralNGramConfig
from chainrule.models.ngram import NGram
from chainrule.models.rnn_lm import GRULM, LSTMLM, RNNLM, RecurrentConfig, RecurrentLM
from chainrule.models.smoothing import Additive, GoodTuring, KneserNey

__all__ = [
    "FAMILIES",
    "GPT",
    "GRULM",
    "IGNORE",
    "LSTMLM",
    "MLPLM",
    "RNNLM",
    "Additive",
    "GPTConfig",
    "GoodTuring",
    "KneserNey",
    "LanguageModel",
    "Llama",
    "LlamaConfig",
    "MLPConfig",
    "NGram",
    "NeuralNGram",
    "NeuralNGramConfig",
    "RecurrentConfig",
    "RecurrentLM",
    "Terminals",
    "describe",
    "family",
    "make",
    "rebuild",
]
