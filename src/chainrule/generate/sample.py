"""Text from a language model of any family: alone or many at once, as ids or as text, whole or piece by piece.

generate(model, [3, 1], 20, temperature=0)                      ids
stream(model, [3, 1], 20, top_p=0.9, seed=7)                    ids, one by one
write(model, tokenizer, "Once", 50, stop=("\\n",))               text, piece by piece
complete(model, tokenizer, ["Once", "And"], Sampling())         many prompts in one loop, with all that is known
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError
from chainrule.generate.engine.weights import check_format
from chainrule.generate.healing import Prompt, healed
from chainrule.generate.requests import Request, run
from chainrule.generate.sampling import Sampling
from chainrule.generate.session import Session, session, vocab_size
from chainrule.models import LanguageModel, NGram
from chainrule.text import Tokenizer, prompt_ids
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
    model: Model,
    tokenizer: Tokenizer,
    prompt: str,
    n: int = 500,
    *,
    weights: str = "fp32",
    special: bool = False,
    show_special: bool = False,
    **options: Any,
) -> Iterator[str]:
    """The text of at most n tokens that follow `prompt`, piece by piece; an empty prompt is as in `encoded`

    A space at the end of the prompt becomes part of the first token (`generate.healing`), and is not given again.

    A piece is empty while a character is not complete, or while it may become a stop string. With `special` the names
    of special tokens in the prompt are these tokens; those that the model writes are left out unless `show_special`.
    """
    sampling = Sampling(max_new_tokens=n, **options)
    begun = prompted(tokenizer, prompt, special)
    request = Request(begun, sampling, vocab_size(model), tokenizer, show_special=show_special)
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
    special: bool = False,
    show_special: bool = False,
    together: int = TOGETHER,
    tell: Callable[[int], None] = lambda tokens: None,
) -> list[Request]:
    """Continue each prompt; `sampling` is one for all prompts, or one each

    `together` prompts run in one loop, so the weights are read once for all; the tokens do not change. `tell` is
    called with the number of tokens so far. `special` and `show_special` are those of `write`.
    """
    options = [sampling] * len(prompts) if isinstance(sampling, Sampling) else sampling
    if len(options) != len(prompts):
        raise ConfigError(f"complete: {len(prompts)} prompts, {len(options)} samplings (must be equal)")
    rows = [prompted(tokenizer, prompt, special) for prompt in prompts]
    asked = zip(rows, options, strict=True)
    return list(
        completions(
            model, tokenizer, asked, weights=weights, scored=scored, show_special=show_special,
            together=together, tell=tell,
        )
    )  # fmt: skip


def completions(
    model: Model,
    tokenizer: Tokenizer,
    asked: Iterable[tuple[Ids | Prompt, Sampling]],
    *,
    weights: str = "fp32",
    cache: str = "fp32",
    scored: bool = False,
    show_special: bool = False,
    together: int = TOGETHER,
    tell: Callable[[int], None] = lambda tokens: None,
) -> Iterator[Request]:
    """Continue each prompt by its sampling, in order; only `together` of them are held at a time."""
    if together < 1:
        raise ConfigError(f"complete: together is {together} (must be at least 1)")
    V, rest, tokens = vocab_size(model), iter(asked), 0
    texts: Session | None = None
    while some := list(islice(rest, together)):
        requests = [
            Request(begun, how, V, tokenizer, scored=scored, show_special=show_special) for begun, how in some
        ]
        texts = texts or session(model, weights, len(requests), cache)
        for _ in run(texts, requests):
            tokens += 1
            tell(tokens)
        yield from requests


def prompted(tokenizer: Tokenizer, prompt: str, special: bool = False) -> Prompt:
    """A prompt to continue: its ids as `encoded` gives them, but a space at its end is left to the first token."""
    return healed(tokenizer, prompt, encoded(tokenizer, prompt, special))


def encoded(tokenizer: Tokenizer, prompt: str, special: bool = False) -> Ids:
    """The ids of a prompt (t,) as `text.prompt_ids` gives them.

    Of an empty one what begins every text, a new line, a space, a full stop, or token 0: the first that this
    tokenizer has. Some texts hold no line ends, and some tokenizers drop all white space.
    """
    if (ids := prompt_ids(tokenizer, prompt, special=special)).size:
        return ids
    for text in ("", "\n", " ", "."):
        with suppress(DataError):  # a character that it does not know
            if (ids := tokenizer.encode(text)).size:
                return ids
    return np.zeros(1, np.int32)
