"""Models, one file or folder each, with the configuration beside the model.

`model` says what training needs, `language_model` what sampling needs, `registry` lists the families by name;
`gradient`, `microbatch` and `compiled` compute the gradient of a batch; `tuning` has ways to tune a trained model.
"""

from chainrule import lazy
from chainrule.models.bag_of_words import BagOfWords, BagOfWordsConfig
from chainrule.models.bert import (
    BERT,
    BERTClassifier,
    BERTClassifierConfig,
    BERTConfig,
    BERTEmbedder,
    BERTEmbedderConfig,
    BERTPretraining,
    BERTPretrainingConfig,
    BERTTagger,
    BERTTaggerConfig,
    fine_tune,
)
from chainrule.models.compiled import Compiled, compile
from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.grow import with_tokens
from chainrule.models.language_model import LanguageModel, TransformerLM
from chainrule.models.llama import Llama, LlamaConfig
from chainrule.models.model import Model
from chainrule.models.neox import NeoX, NeoXConfig
from chainrule.models.ngram import Additive, GoodTuring, KneserNey, NGram, Terminals
from chainrule.models.registry import FAMILIES, describe, family, make, model_class, n_params, rebuild
from chainrule.models.reward import Reward
from chainrule.models.rnn_lm import GRULM, LSTMLM, RNNLM, RecurrentConfig, RecurrentLM
from chainrule.models.seq2seq import T5, EncoderDecoder, Seq2Seq, Seq2SeqConfig, T5Config
from chainrule.models.window.mlp_lm import MLPLM, MLPConfig
from chainrule.models.window.neural_ngram import NeuralNGram, NeuralNGramConfig
from chainrule.models.word2vec import CBOW, NOTHING, SkipGram, Word2Vec, Word2VecConfig
from chainrule.types import IGNORE

__all__ = [
    "BERT", "CBOW", "FAMILIES", "GPT", "GRULM", "IGNORE", "LSTMLM", "MLPLM", "NOTHING", "RNNLM", "T5", "Additive",
    "BERTClassifier", "BERTClassifierConfig", "BERTConfig", "BERTEmbedder", "BERTEmbedderConfig", "BERTPretraining",
    "BERTPretrainingConfig", "BERTTagger", "BERTTaggerConfig", "BagOfWords", "BagOfWordsConfig", "Compiled",
    "EncoderDecoder",
    "GPTConfig", "GoodTuring", "KneserNey", "LanguageModel", "Llama", "LlamaConfig", "MLPConfig", "Model", "NGram",
    "NeoX", "NeoXConfig", "NeuralNGram", "NeuralNGramConfig", "RecurrentConfig", "RecurrentLM", "Reward", "Seq2Seq",
    "Seq2SeqConfig", "SkipGram", "T5Config", "Terminals", "TransformerLM", "Word2Vec", "Word2VecConfig", "compile",
    "describe",
    "family", "fine_tune", "make", "model_class", "n_params", "rebuild", "with_tokens"
]  # fmt: skip

lazy.names(__name__, rooms="tuning")
