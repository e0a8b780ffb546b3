"""Options of a request as a `Sampling`, and whether it fits the model."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule.errors import DataError
from chainrule.generate.sampling import Sampling, with_defaults
from chainrule.serve.api.errors import ApiError, refused
from chainrule.serve.api.requests import SamplingBody
from chainrule.serve.limits import LIMITS
from chainrule.serve.models import Served
from chainrule.types import Ids

TAKEN = (
    "frequency_penalty",
    "presence_penalty",
    "temperature",
    "top_p",
    "min_p",
    "typical",
    "repetition_penalty",
)


def sampling_of(body: SamplingBody, served: Served) -> Sampling:
    """Fields that are left out are the model's own, else OpenAI's; without a seed each request has another one."""
    options: dict[str, Any] = {name: value for name in TAKEN if (value := getattr(body, name)) is not None}
    if body.top_k:  # 0 is all of them
        options["top_k"] = body.top_k
    if body.logit_bias:
        options["logit_bias"] = {_token(key): value for key, value in body.logit_bias.items()}
    options["stop"] = _stop(body.stop)
    options["seed"] = secrets.randbits(32) if body.seed is None else body.seed % 2**64
    sampling = Sampling(**{"temperature": 1.0} | options)
    found = with_defaults(sampling, served.tokenizer.conventions, options)
    found.check(served.vocab_size)
    return found


def _token(key: str) -> int:
    if not (key.isascii() and key.isdecimal() and len(key) < 12):
        raise refused(f"logit_bias: key {key[:40]!r} (must be a token id)", "logit_bias")
    return int(key)


def _stop(given: str | list[str] | None) -> tuple[str, ...]:
    stops = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    if len(stops) > LIMITS.stop_strings:
        rule = f"must be at most {LIMITS.stop_strings}"
        raise refused(f"stop: {len(stops)} strings ({rule})", "stop")
    for stop in stops:
        if not 0 < len(stop) <= LIMITS.stop_length:
            rule = f"must have from 1 to {LIMITS.stop_length} characters"
            raise refused(f"stop: a string of {len(stop)} characters ({rule})", "stop")
    return stops


def token_ids(ids: Sequence[int], vocab_size: int, param: str) -> Ids:
    """The tokens that a request names by their ids."""
    if (largest := max(ids, default=0)) >= vocab_size:
        raise refused(f"{param}: token {largest} (must be from 0 to {vocab_size - 1})", param)
    return np.array(ids, np.int32)


@contextmanager
def encoding(param: str) -> Iterator[None]:
    """A text that the tokenizer cannot encode is refused by the name of its field."""
    try:
        yield
    except DataError as error:
        raise refused(f"{param}: {error}", param) from None


def check_text(text: str, served: Served, param: str) -> None:
    """Refuse a text that cannot fit the context, before it is encoded."""
    if served.context is None or served.longest_token is None:
        return
    if len(text) > (most := (served.context + 1) * served.longest_token):
        raise too_long(f"a text of {len(text):,} characters", f"holds {most:,} at most", param)


def tokens_left(served: Served, prompt: int, wanted: int | None, default: int, param: str) -> int:
    """How many tokens follow a prompt: those that are wanted, which must fit the context, or what fits by default."""
    if served.context is None:
        if wanted is not None and wanted > LIMITS.max_tokens:
            rule = f"must be at most {LIMITS.max_tokens:,}"
            raise refused(f"max_tokens: {wanted:,} ({rule})", "max_tokens")
        return default if wanted is None else wanted
    left = served.context - prompt
    if left < (1 if wanted is None else wanted):
        asked = f"{prompt:,} tokens" if wanted is None else f"{prompt:,} tokens and max_tokens {wanted:,}"
        raise too_long(asked, f"is {served.context:,} tokens", param)
    return min(default, left) if wanted is None else wanted


def too_long(asked: str, rule: str, param: str) -> ApiError:
    """The error for a text that does not fit."""
    return refused(f"{param}: {asked} (the model's context {rule})", param, "context_length_exceeded")
