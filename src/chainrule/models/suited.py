"""Sizes and settings that suit the amount of data: of classifiers, and of models that are tuned to answer.

A model soon knows each of a few thousand texts: they want a small one, much dropout, and a bag of words beside the
encoder. A body that has learned from other texts wants few passes, and no more dropout than it had. One that is frozen
does not know which words matter here: its head is told by a bag of words too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypedDict

EVALUATIONS = 20  # of a training, at most
FEWEST = 4  # evaluations of a training that is told to be short
FEW = 20_000  # texts, below which a model is soon past its best
TUNING_PASSES = 3  # over the instructions
USUAL_WIDTH = 128  # of a model for which the learning rate of its family is meant
# The highest learning rate of each method of tuning, as a multiple of that of the pretraining. All weights learn
# slowly, or what they know is washed out; what is new, or little, must move further (docs/guide/fine-tuning.md).
TUNING_RATES = {
    "full": 0.1,
    "lora": 1.0,
    "adapter": 1.0,
    "prefix": 3.0,
    "prompt": 3.0,
    "bitfit": 3.0,
    "head": 1.0,
}


class Begun(TypedDict, total=False):
    """What a training begins with, if not with new weights: a model, its tokenizer, and whether its body is frozen."""

    start: Any
    tokenizer: Any
    frozen: bool


class Suited(NamedTuple):
    """What is chosen unless it is given: fields of the model's config, and of `TrainConfig`."""

    sizes: dict[str, Any]
    training: dict[str, Any]
    texts: int = 0
    """For how many texts to train on."""


SHAPE = {"n_layer", "n_head", "n_embd", "n_hidden"}  # if one is given, none is chosen, nor a bag of words


def for_bert(texts: int, *, trained: bool = False, frozen: bool = False) -> Suited:
    """For a BERT that labels `texts` texts, new or `trained`; if its body is `frozen`, only the head learns."""
    bag = {"buckets": 1 << 16, "l2": 1 / (20 * max(1, texts))}
    if frozen:  # each text is read once, so passes cost little
        return Suited(bag, passes(texts, 20, batch_size=32) | {"lr": 3e-3}, texts)
    if trained:
        return Suited({}, passes(texts, 3, batch_size=32) | {"lr": 1e-4}, texts)
    few = texts < FEW
    sizes = {
        "n_layer": 1 if few else 4,
        "n_head": 4,
        "n_embd": 128,
        "n_hidden": 512,
        "dropout": 0.3 if few else 0.1,
        **bag,
    }
    return Suited(sizes, passes(texts, 6 if few else 4, batch_size=32) | {"lr": 5e-4 if few else 1e-3}, texts)


def for_bag_of_words(texts: int) -> Suited:
    """For a bag of words: the fewer texts, the less any single word may decide."""
    epochs = max(2, min(15, 200_000 // max(1, texts)))  # of many texts each is read seldom
    settings = passes(texts, epochs, batch_size=64) | {"lr": 0.05, "weight_decay": 0.0}
    return Suited({"l2": 1 / (20 * max(1, texts))}, settings, texts)


def passes(texts: int, epochs: int, *, batch_size: int) -> dict[str, Any]:
    """The settings of a training that reads all texts `epochs` times."""
    each = -(-texts // batch_size)
    steps = epochs * each
    return {
        "max_steps": steps,
        "batch_size": batch_size,
        "eval_every": max(each, -(-steps // EVALUATIONS)),
        "warmup": min(100, steps // 10),
    }


def within(steps: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for a training of `steps` steps: warmup and evaluations come before its end.

    >>> within(20, {"warmup": 96, "eval_every": 323})
    {'warmup': 2, 'eval_every': 5}
    """
    most = {"warmup": steps // 10, "eval_every": max(1, steps // FEWEST)}
    return {name: min(value, most[name]) if name in most else value for name, value in settings.items()}


def for_tuning(rows: int, rate: float) -> Suited:
    """For a language model that learns to answer, from rows of text, after a pretraining at this learning rate.

    It knows the language already: more passes would teach it the phrases of the instructions, a higher rate would
    destroy what it knows.
    """
    settings = passes(rows, TUNING_PASSES, batch_size=8)
    return Suited({}, settings | {"lr": rate * TUNING_RATES["full"]}, rows)


def pretraining_rate(usual: float, width: int) -> float:
    """The likely highest rate of a pretraining that is not known: the usual one of a family, less for a wider model.

    >>> pretraining_rate(3e-3, 768)  # a GPT-2 of 124 M parameters had 6e-4 (Brown et al. 2020)
    0.0005
    """
    return usual * min(1.0, USUAL_WIDTH / width)


def rate_in_words(method: str) -> str:
    """What the learning rate of a method is unless it is given."""
    factor = TUNING_RATES[method]
    times = {1.0: "", 0.1: "a tenth of "}.get(factor, f"{factor:g} times ")
    return f"{times}that of the base's own training"


def tuning_warning(lr: float, pretraining: float, method: str = "full") -> str:
    """What to say about the learning rate of a tuning: nothing, or that it is too near that of the pretraining.

    Only what the base has learned can be washed out, so that only tuning of all weights has a limit.
    """
    highest = pretraining * TUNING_RATES["full"]
    if method != "full" or lr <= highest * (1 + 1e-9):
        return ""
    rule = f"must be at most a tenth, {highest:g}, or much of what the model knows is forgotten"
    return f"learning rate {lr:g}, in the pretraining {pretraining:g} ({rule})"


def for_preferences(pairs: int, *, lr: float) -> Suited:
    """For a model that has learned already and soon knows each of these pairs of answers."""
    return Suited({}, passes(pairs, 3, batch_size=16) | {"lr": lr, "weight_decay": 0.0}, pairs)


def for_prompts(prompts: int) -> Suited:
    """For a policy that learns from its answers to prompts: a step takes long, and a few dozen show where it goes."""
    when = {"warmup": 5, "eval_every": 10, "eval_windows": 64, "save_every": 10}
    return Suited({}, {"max_steps": 100, "batch_size": 32, "lr": 3e-5, "weight_decay": 0.0} | when, prompts)


RULES: dict[str, Callable[[int], Suited]] = {  # by family, or by method of alignment
    "bert-classifier": for_bert,
    "bow-classifier": for_bag_of_words,
    "dpo": partial(for_preferences, lr=5e-5),
    "reward": partial(for_preferences, lr=1e-4),
    "ppo": for_prompts,
}


def chosen(name: str) -> dict[str, Any]:
    """The fields that are chosen by the rule of this name unless given: the value, None if the texts decide."""
    if name not in RULES:
        return {}
    few, many = (found.sizes | found.training for found in map(RULES[name], (FEW - 1, 10 * FEW)))
    return {name: value if many[name] == value else None for name, value in few.items()}
