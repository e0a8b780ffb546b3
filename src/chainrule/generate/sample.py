"""Sampling: the model scores every token, a seeded draw takes one, and the model reads it.

The draw at position n is a pure function of (seed, n): the same seed writes the same text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ChainruleError, ConfigError, DataError
from chainrule.generate.readers import reader
from chainrule.generate.weights import check_format
from chainrule.models import LanguageModel
from chainrule.random import generator
from chainrule.text import TextStream, Tokenizer

Ids = npt.NDArray[np.integer[Any]]


def choose(
    logits: npt.NDArray[np.floating[Any]], rng: np.random.Generator, *, temperature: float, top_k: int | None
) -> int:
    """logits (V,) -> a token: the likeliest at temperature 0, else drawn from softmax(logits / temperature)

    With `top_k` only the k likeliest can be drawn.
    """
    if not np.isfinite(logits).all():
        raise ChainruleError("sample: the model's logits are not finite (its training diverged)")
    order = np.argsort(-logits, kind="stable")  # of equal tokens the first
    if temperature == 0:
        return int(order[0])
    kept = order[:top_k]
    scores = logits[kept].astype(np.float64)
    cumulative = np.cumsum(np.exp((scores - scores[0]) / temperature))
    drawn = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    return int(kept[min(drawn, len(kept) - 1)])  # the product may round up to the whole sum


def stream(
    model: LanguageModel,
    ids: npt.ArrayLike,
    n: int,
    *,
    temperature: float = 0.8,
    top_k: int | None = None,
    seed: int = 0,
    weights: str = "fp32",
) -> Iterator[int]:
    """ids (t,) -> n tokens that follow them, one by one

    The model sees all tokens as long as they fit its context, of a longer prompt the newest `block_size`; how it goes
    on from there is in `generate.readers`. `weights` is a format of `generate.weights`.
    """
    context = np.asarray(ids)
    if context.ndim != 1 or context.size == 0:
        raise DataError(f"sample: prompt of shape {context.shape} (must be at least one token)")
    if n < 1:
        raise ConfigError(f"sample: n is {n} (must be at least 1)")
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ConfigError(
            f"sample: temperature is {temperature} (must be 0, the likeliest token, or positive)"
        )
    if not 0 <= seed < 2**64:
        raise ConfigError(f"sample: seed is {seed} (must be from 0 to 2**64 - 1)")
    if top_k is not None and top_k < 1:
        raise ConfigError(f"sample: top_k is {top_k} (must be at least 1)")
    check_format(weights)

    def tokens() -> Iterator[int]:
        text = reader(model, weights)
        new = context.tolist()
        for position in range(n):
            rng = generator("sample", position, seed=seed)
            new = [choose(text.read(new), rng, temperature=temperature, top_k=top_k)]
            yield new[0]

    return tokens()


def generate(model: LanguageModel, ids: npt.ArrayLike, n: int, **options: Any) -> Ids:
    """ids (t,) -> the n tokens that follow them (n,); options as for `stream`"""
    return np.fromiter(stream(model, ids, n, **options), dtype=np.int32, count=n)


def beginning(tokenizer: Tokenizer) -> Ids:
    """ids (t,) to start from without a prompt: what begins every text, a new line, a space, a full stop, or token 0

    The first that this tokenizer has: some texts hold no line ends, and some tokenizers drop all white space.
    """
    for text in ("", "\n", " ", "."):
        try:
            ids = tokenizer.encode(text)
        except DataError:  # a character that it does not know
            continue
        if ids.size:
            return ids
    return np.zeros(1, np.int32)


def write(model: LanguageModel, tokenizer: Tokenizer, prompt: str, n: int, **options: Any) -> Iterator[str]:
    """The text of n tokens that follow `prompt`, piece by piece; an empty prompt is that of `beginning`

    A piece is empty while a character is not complete.
    """
    ids = tokenizer.encode(prompt) if prompt else beginning(tokenizer)
    tokens = stream(model, ids, n, **options)

    def pieces() -> Iterator[str]:
        text = TextStream(tokenizer, after=ids)
        yield from map(text.push, tokens)
        if rest := text.close():
            yield rest

    return pieces()
