"""The families of models by name: what a command line or a checkpoint says, and what it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from chainrule.errors import ConfigError
from chainrule.models.bag_of_words import BagOfWords, BagOfWordsConfig
from chainrule.models.bert.body import BERT, BERTConfig
from chainrule.models.bert.heads import CONFIGS, BERTClassifier, BERTEmbedder, BERTTagger
from chainrule.models.bert.pretraining import BERTPretraining, BERTPretrainingConfig
from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.llama import Llama, LlamaConfig
from chainrule.models.model import Model
from chainrule.models.neox import NeoX, NeoXConfig
from chainrule.models.reward import REWARDS as REWARD_KINDS
from chainrule.models.rnn_lm import GRULM, LSTMLM, RNNLM, RecurrentConfig
from chainrule.models.seq2seq.config import Seq2SeqConfig
from chainrule.models.seq2seq.model import Seq2Seq
from chainrule.models.seq2seq.t5 import T5, T5Config
from chainrule.models.window.mlp_lm import MLPLM, MLPConfig
from chainrule.models.window.neural_ngram import NeuralNGram, NeuralNGramConfig
from chainrule.models.word2vec import CBOW, SkipGram, Word2VecConfig
from chainrule.suggest import hinted


class Family(NamedTuple):
    """A class of models, the dataclass with its sizes, and how it is trained unless told otherwise."""

    model: type[Model]
    config: type[Any]
    lr: float = 3e-3
    """Highest learning rate."""
    reads: str = "characters"
    """What a token is unless a tokenizer is given: characters, byte pairs, word pieces or words."""


FAMILIES = {  # language models
    "gpt": Family(GPT, GPTConfig),
    "llama": Family(Llama, LlamaConfig),
    "neox": Family(NeoX, NeoXConfig),
    "ngram": Family(NeuralNGram, NeuralNGramConfig),
    "mlp": Family(MLPLM, MLPConfig),
    "rnn": Family(RNNLM, RecurrentConfig),
    "gru": Family(GRULM, RecurrentConfig),
    "lstm": Family(LSTMLM, RecurrentConfig),
}
PAIRS = {  # what reads one sequence and writes another
    "seq2seq": Family(Seq2Seq, Seq2SeqConfig, lr=1e-3, reads="byte pairs"),
    "t5": Family(T5, T5Config, lr=1e-3, reads="byte pairs"),
}
ENCODERS = {  # what reads in both directions
    "bert": Family(BERTPretraining, BERTPretrainingConfig, lr=2e-3, reads="word pieces"),
    "bert-classifier": Family(BERTClassifier, CONFIGS[BERTClassifier], lr=1e-3, reads="word pieces"),
    "bert-tagger": Family(BERTTagger, CONFIGS[BERTTagger], lr=1e-3, reads="word pieces"),
    "bert-embedder": Family(BERTEmbedder, CONFIGS[BERTEmbedder], lr=1e-3, reads="word pieces"),
}
BODIES = {"bert-body": Family(BERT, BERTConfig, reads="word pieces")}  # training puts a head on them
REWARDS = {  # what says how good a text is, on the body of a language model
    f"{name}-reward": Family(*REWARD_KINDS[known.model], lr=known.lr / 10)
    for name, known in FAMILIES.items()
    if known.model in REWARD_KINDS
}
BAGS = {"bow-classifier": Family(BagOfWords, BagOfWordsConfig, lr=0.1, reads="words")}  # what reads no order
KNOWN = FAMILIES | PAIRS | ENCODERS | BAGS  # the models of text
WORD_VECTORS = {"skip-gram": Family(SkipGram, Word2VecConfig), "cbow": Family(CBOW, Word2VecConfig)}
ALL = KNOWN | BODIES | REWARDS | WORD_VECTORS


def family(name: str) -> Family:
    """A family by its name."""
    if name not in ALL:
        rule = hinted(f"must be one of {', '.join(KNOWN)}", name, KNOWN)
        raise ConfigError(f"model {name!r}: no such family ({rule})")
    return ALL[name]


def make(name: str, **sizes: Any) -> Any:
    """A new model; `sizes` are the fields of its config.

    >>> import chainrule as cr
    >>> cr.models.make("llama", n_layer=1, n_embd=32, vocab_size=10).count()
    37280
    """
    chosen = family(name)
    return chosen.model(chosen.config(**sizes))


def describe(model: Model) -> dict[str, Any]:
    """A plain description for JSON, `model_type` and the sizes, which `rebuild` takes back."""
    names = [name for name, known in ALL.items() if known.model is type(model)]
    if not names:
        raise ConfigError(f"model {type(model).__name__}: no such family (must be in models.FAMILIES)")
    return {"model_type": names[0]} | asdict(model.config)


def rebuild(description: Mapping[str, Any]) -> Any:
    """A model of the family and size that `describe` gave, with new weights."""
    model, config = described(description)
    return model(config)


def model_class(config: Any) -> type[Model]:
    """The class of models that has sizes of this kind."""
    for known in ALL.values():
        if known.config is type(config):
            return known.model
    raise ConfigError(f"{type(config).__name__}: no model has such sizes (must be of models.FAMILIES)")


def n_params(description: Mapping[str, Any]) -> int:
    """The number of parameters of the model that `rebuild` would make, without making it."""
    model, config = described(description)
    return model.n_params(config)


def described(description: Mapping[str, Any]) -> tuple[type[Model], Any]:
    """The class and the sizes that `describe` gave."""
    sizes = dict(description)
    chosen = family(str(sizes.pop("model_type", None)))
    return chosen.model, chosen.config(**sizes)
