"""Sampling: everything that decides which token follows, and when to stop, in one object.

What each option does to the scores, and in which order, is in `generate.processors`.

>>> import chainrule as cr
>>> cr.generate.Sampling(temperature=0.7, top_p=0.9, stop=("END",)).seed
0
>>> cr.generate.Sampling(top_p=1.5)
Traceback (most recent call last):
chainrule.errors.ConfigError: sample: top_p is 1.5 (must be from 0 to 1)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.calls import Fields
from chainrule.errors import ConfigError, DataError, Owner, Setting
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.text import Conventions

SAMPLE = Owner("sample: ")
MOST_TOKENS = 1_000_000_000  # more than anybody will wait for
MOST_SHIFT = 1e6  # of a logit, far beyond those of any model
MOST_SAMPLES = 1_000_000_000  # texts for a prompt, which are written one after the other


@dataclass(frozen=True)
class Sampling(Fields):
    """How to sample: which tokens can follow, and when to stop."""

    max_new_tokens: int = 500
    """Tokens to generate at most: characters, unless the run has another tokenizer."""
    temperature: float = 0.8
    """0 always takes the likeliest token; higher values make unlikely tokens likelier."""
    top_k: int | None = None
    """Sample only from this many of the likeliest tokens."""
    top_p: float = 1.0
    """Sample only from the likeliest tokens that together have this probability."""
    min_p: float = 0.0
    """Sample only from tokens with at least this fraction of the probability of the likeliest."""
    typical: float = 1.0
    """Sample only from the tokens that together have this probability and whose surprise is nearest to the entropy."""
    repetition_penalty: float = 1.0
    """Above 1: tokens of the prompt and the text become less likely; positive logits are divided by it."""
    frequency_penalty: float = 0.0
    """Subtracted from the logit of a token for each time it was generated; below 0 repeats more."""
    presence_penalty: float = 0.0
    """Subtracted from the logit of a token that was generated at all."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of tokens by id; -inf forbids one. On the command line: ID BIAS ID BIAS ..."""
    stop: tuple[str, ...] = ()
    """End before the first of these strings; none of it is written."""
    stop_tokens: tuple[int, ...] = ()
    """End before the first of these tokens, by id."""
    seed: int = 0
    """The same seed draws the same text; where nothing is drawn it does not count."""

    def __post_init__(self) -> None:
        check = Check("sample", self)
        check.whole(0, MOST_TOKENS, "max_new_tokens")
        warm = math.isfinite(self.temperature) and self.temperature >= 0
        check.require(warm, "temperature", rule="must be 0, the likeliest token, or positive")
        check.whole(1, None, "top_k")
        check.between(0, 1, "top_p", "min_p", "typical")
        penalty = 1 / MOST_SHIFT <= self.repetition_penalty <= MOST_SHIFT
        check.require(penalty, "repetition_penalty", rule="must be from 1e-6 to 1e6; 1 is none")
        check.between(-MOST_SHIFT, MOST_SHIFT, "frequency_penalty", "presence_penalty")
        for token, bias in self.logit_bias.items():
            if not (abs(bias) <= MOST_SHIFT or bias == -math.inf):
                rule = "must be from -1e6 to 1e6, or -inf"
                raise ConfigError(SAMPLE, Setting("logit_bias"), f" of token {token} is {bias} ({rule})")
        listed = isinstance(self.stop, tuple | list) and all(self.stop)
        check.require(listed, "stop", rule="must be a list of strings, none of them empty")
        check.seed()

    def check(self, vocab_size: int) -> None:
        """The tokens it names must be of this vocabulary."""
        for name, tokens in (("logit_bias", self.logit_bias), ("stop_tokens", self.stop_tokens)):
            for token in tokens:
                if not (isinstance(token, int | np.integer) and 0 <= token < vocab_size):
                    rule = f"must be from 0 to {vocab_size - 1}"
                    raise ConfigError(SAMPLE, Setting(name), f" has token {token} ({rule})")


def with_defaults(sampling: Sampling, conventions: Conventions, given: Collection[str] = ()) -> Sampling:
    """`sampling` with the defaults of a model for fields that are not `given`, and with its end tokens."""
    own: dict[str, Any] = {name: value for name, value in conventions.generation.items() if name not in given}
    ends = () if "stop_tokens" in given else conventions.eos
    return replace(sampling, **own, stop_tokens=(*sampling.stop_tokens, *ends))


def check_prompt(ids: Any, vocab_size: int) -> list[int]:
    """ids (n,) as a list: at least one token, all of them of the vocabulary."""
    array = np.asarray(ids)
    if array.ndim != 1 or array.size == 0:
        raise DataError(
            SAMPLE, f"prompt of shape {array.shape} (must be (n,): one row of at least one token id)"
        )
    if array.dtype.kind not in "iu":
        raise DataError(SAMPLE, f"prompt of {array.dtype} (must be token ids, integers)")
    for token in (array.min(), array.max()):
        if not 0 <= token < vocab_size:
            raise DataError(SAMPLE, f"token {token} in the prompt (must be from 0 to {vocab_size - 1})")
    return [int(token) for token in array]
