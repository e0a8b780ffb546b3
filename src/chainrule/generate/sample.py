"""Text from a language model of any family: alone or many at once, as ids or as text, whole or piece by piece.

generate(model, [3, 1], 20, temperature=0)                      ids
stream(model, [3, 1], 20, top_p=0.9, seed=7)                    ids, one by one
write(model, tokenizer, "Once", 50, stop=("\\n",))               text, piece by piece
complete(model, tokenizer, ["Once", "And"], Sampling())         many prompts in one loop, with all that is known
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError
from chainrule.generate.engine.weights import check_format
from chainrule.generate.requests import Request, run
from chainrule.generate.sampling import Sampling
from chainrule.generate.session import session, vocab_size
from chainrule.models import LanguageModel, NGram
from chainrule.text import Tokenizer
from chainrule.types import Ids

Model = LanguageModel | NGram

TOGETHER = 16  # requests in one loop, by default: each has a cache of the whole context


def stream(
    model: Model, ids: npt.ArrayLike, n: int = 500, *, weights: str = "fp32", **options: Any
) -> Iterator[int]:
    """ids (t,) -> at most n tokens that follow them, one by one; the options are the fields of `Sampling`

    The model sees all tokens as long as they fit its context, of a longer prompt the newest `block_size`; how it goes
    on from there is in `generate.session`. `weights` is a format of `generate.engine.weights`.
    """
    request = Request(ids, Sampling(max_new_tokens=n, **options), vocab_size(model))
    if request.sampling.stop:
        raise ConfigError("stream: stop needs text (use stop_tokens, or write with a tokenizer)")
    check_format(weights)

    def tokens() -> Iterator[int]:
        for _ in run(session(model, weights), [request]):
            yield from request.tokens[-1:] if request.finish != "stop" else ()

    return tokens()


def generate(model: Model, ids: npt.ArrayLike, n: int = 500, **options: Any) -> Ids:
    """ids (t,) -> the tokens that follow them, n unless a stop token ends them; options as for `stream`

    >>> import chainrule as cr
    >>> model = cr.models.NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4)
    >>> cr.generate.generate(model, [2], 3, temperature=0).tolist()
    [3, 1, 0]
    """
    return np.fromiter(stream(model, ids, n, **options), dtype=np.int32)


def write(
    model: Model, tokenizer: Tokenizer, prompt: str, n: int = 500, *, weights: str = "fp32", **options: Any
) -> Iterator[str]:
    """The text of at most n tokens that follow `prompt`, piece by piece; an empty prompt is as in `encoded`

    A piece is empty while a character is not complete, or while it may become a stop string.
    """
    sampling = Sampling(max_new_tokens=n, **options)
    request = Request(encoded(tokenizer, prompt), sampling, vocab_size(model), tokenizer)
    check_format(weights)
    return (request.piece for _ in run(session(model, weights), [request]))


def complete(
    model: Model,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    sampling: Sampling | Sequence[Sampling],
    *,
    weights: str = "fp32",
    scored: bool = False,
    together: int = TOGETHER,
    tell: Callable[[int], None] = lambda tokens: None,
) -> list[Request]:
    """Continue each prompt; `sampling` is one for all prompts, or one each

    `together` prompts run in one loop, so the weights are read once for all; the tokens do not change. `tell` is
    called with the number of tokens so far.
    """
    options = [sampling] * len(prompts) if isinstance(sampling, Sampling) else sampling
    if len(options) != len(prompts):
        raise ConfigError(f"complete: {len(prompts)} prompts, {len(options)} samplings (must be equal)")
    if together < 1:
        raise ConfigError(f"complete: together is {together} (must be at least 1)")
    V, rows = vocab_size(model), [encoded(tokenizer, prompt) for prompt in prompts]
    requests = [
        Request(ids, how, V, tokenizer, scored=scored) for ids, how in zip(rows, options, strict=True)
    ]
    texts = session(model, weights, batch=min(together, max(1, len(requests))))
    parts = (requests[first : first + together] for first in range(0, len(requests), together))
    for tokens, _ in enumerate(chain.from_iterable(run(texts, part) for part in parts), start=1):
        tell(tokens)
    return requests


def encoded(tokenizer: Tokenizer, prompt: str) -> Ids:
    """The ids of a prompt (t,); of an empty one what begins every text, a new line, a space, a full stop, or token 0

    The first that this tokenizer has: some texts hold no line ends, and some tokenizers drop all white space.
    """
    if (ids := tokenizer.encode(prompt)).size:
        return ids
    for text in ("", "\n", " ", "."):
        with suppress(DataError):  # a character that it does not know
            if (ids := tokenizer.encode(text)).size:
                return ids
    return np.zeros(1, np.int32)
