"""Models, one file each."""

from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.language_model import IGNORE, LanguageModel
from chainrule.models.llama import Llama, LlamaConfig
from chainrule.models.word2vec import CBOW, NOTHING, SkipGram, Word2Vec, Word2VecConfig

__all__ = [
    "CBOW",
    "GPT",
    "IGNORE",
    "NOTHING",
    "GPTConfig",
    "LanguageModel",
    "Llama",
    "LlamaConfig",
    "SkipGram",
    "Word2Vec",
    "Word2VecConfig",
]
