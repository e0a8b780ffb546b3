"""Probes of what a language model can do, each measured twice: by a smooth measure and by one with a threshold.

    sums        12+34=            46            digits of two numbers
    scrambled   etrhe >           three         letters of a word in another order
    few shots   cat>tac dog>god sun>            any of them, after examples of the same kind

An answer is right if every token of it is the likeliest after what comes before; its nats per token fall long before
that. So an ability that seems to appear at once may have grown all along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from chainrule.errors import DataError
from chainrule.models import LanguageModel
from chainrule.random import generator
from chainrule.text import Tokenizer


class Item(NamedTuple):
    """What a model reads, and what it should write then."""

    prompt: str
    answer: str


class Probed(NamedTuple):
    """How well a model does, by both measures."""

    items: int
    nats: float
    """Smooth: the mean of -ln P of a token of the answers"""
    tokens: float
    """Fraction of tokens that are the likeliest"""
    exact: float
    """With a threshold: fraction of answers of which all tokens are"""


def sums(count: int, digits: int = 2, seed: int = 0) -> list[Item]:
    """Two numbers of at most so many digits, to be added"""
    pairs = generator("sums", seed=seed).integers(10**digits, size=(count, 2)).tolist()
    return [Item(f"{a}+{b}=", f"{a + b}\n") for a, b in pairs]


def scrambled(words: Sequence[str], seed: int = 0) -> list[Item]:
    """Words whose letters are in another order"""
    rng = generator("scrambled", seed=seed)
    return [Item("".join(rng.permutation(list(word))) + ">", f"{word}\n") for word in words]


def few_shots(items: Sequence[Item], shots: int) -> list[Item]:
    """Each item after so many others with their answers, the ones before it"""
    if not 0 <= shots < len(items):
        raise DataError(f"few shots: {shots} of {len(items)} items (must be fewer than the items)")
    return [
        Item("".join(p + a for p, a in items[n - shots : n]) + items[n].prompt, items[n].answer)
        for n in range(shots, len(items))
    ]


def probe(model: LanguageModel, tokenizer: Tokenizer, items: Sequence[Item]) -> Probed:
    """Both measures of a model"""
    if not items:
        raise DataError("probe: no items (must be at least one)")
    nats, right = zip(*_answers(model, tokenizer, items), strict=True)
    tokens = np.concatenate(right)
    exact = [bool(each.all()) for each in right]
    return Probed(len(items), float(np.concatenate(nats).mean()), float(tokens.mean()), float(np.mean(exact)))


def _answers(
    model: LanguageModel, tokenizer: Tokenizer, items: Sequence[Item]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each answer: -ln P of its tokens (n,), and which of them are the likeliest (n,)"""
    with model.answering():
        for prompt, answer in items:
            before, wanted = tokenizer.encode(prompt), tokenizer.encode(answer)
            ids = np.concatenate([before, wanted])
            logits = np.asarray(model(ids[None, :-1]).numpy(), np.float64)[0, -len(wanted) :]  # (n, V)
            top = logits.max(-1)
            logs = logits - top[:, None] - np.log(np.exp(logits - top[:, None]).sum(-1, keepdims=True))
            yield -logs[np.arange(len(wanted)), wanted], logits.argmax(-1) == wanted


def by_size(
    models: Sequence[LanguageModel], tokenizer: Tokenizer, items: Sequence[Item]
) -> Mapping[int, Probed]:
    """Both measures of each model, by its number of parameters"""
    return {model.count(): probe(model, tokenizer, items) for model in models}
