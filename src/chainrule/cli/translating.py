"""What `chainrule sample` does with an encoder-decoder: a prompt is a source, and what is written its translation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from chainrule.cli.render.progress import Progress
from chainrule.data import pad
from chainrule.errors import DataError
from chainrule.generate import Beam, Request, Sampling, Translation, Translator, run, search
from chainrule.models import Seq2Seq
from chainrule.tasks.translation import marks
from chainrule.text import Tokenizer
from chainrule.train.log import shorten

TOGETHER = 32  # sources in one loop

Options = TypeVar("Options", Sampling, Beam)


def translations(
    model: Seq2Seq,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    options: Sequence[Sampling] | Beam,
    *,
    scored: bool = False,
) -> Iterator[dict[str, Any]]:
    """Of each source one translation for each `Sampling`, or the best that a search finds"""
    start, end = marks(tokenizer)
    limit = model.config.block_size
    encoded = [tokenizer.encode(source) for source in sources]
    for source, ids in zip(sources, encoded, strict=True):
        if not ids.size:
            raise DataError(f"sample: prompt {source!r} (must have at least one token to translate)")
        if ids.size > limit:  # a translation of a part would pass for one of the whole
            raise DataError(
                f"sample: prompt {shorten(source, 40)!r} of {ids.size:,} tokens "
                f"(must be at most {limit:,}, the context of the model: make it shorter)"
            )
    translator = Translator(model)
    for first in range(0, len(sources), TOGETHER):
        some = sources[first : first + TOGETHER]
        texts = Translation(translator, *pad(encoded[first : first + TOGETHER]))
        with Progress("translate"):
            if isinstance(options, Beam):
                found = list(_searched(texts, tokenizer, some, start, fitted(options, limit, end)))
            else:
                fit = [fitted(sampling, limit, end) for sampling in options]
                found = list(_drawn(texts, tokenizer, some, start, fit, scored))
        yield from found


def listed(tokenizer: Tokenizer, ids: Sequence[int], logs: Sequence[float | None]) -> list[dict[str, Any]]:
    """Tokens and their log-probabilities; the first of a prompt has none"""
    return [
        {"id": id, "token": tokenizer.piece(id), "logprob": log} for id, log in zip(ids, logs, strict=True)
    ]


def _searched(
    texts: Translation, tokenizer: Tokenizer, sources: Sequence[str], start: int, beam: Beam
) -> Iterator[dict[str, Any]]:
    for source, found in zip(sources, search(texts, [[start]] * len(sources), beam), strict=True):
        for best in found:
            result = {"prompt": source, "text": tokenizer.decode(best.tokens)}
            finish = "stop" if best.finished else "length"
            yield result | {"logprob": best.logprob, "score": best.score, "finish": finish}


def _drawn(
    texts: Translation,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    start: int,
    samplings: Sequence[Sampling],
    scored: bool,
) -> Iterator[dict[str, Any]]:
    V = tokenizer.vocab_size
    texts.keep([i for i, _ in enumerate(sources) for _ in samplings])
    requests = [Request([start], s, V, tokenizer, scored=scored) for _ in sources for s in samplings]
    for _ in run(texts, requests):
        pass
    for i, request in enumerate(requests):
        source = sources[i // len(samplings)]
        result: dict[str, Any] = {"prompt": source, "text": request.text, "seed": request.sampling.seed}
        result |= {"finish": request.finish}
        if request.logprobs is not None:
            result |= {"logprobs": listed(tokenizer, request.tokens, request.logprobs)}
        yield result


def fitted(options: Options, limit: int, end: int) -> Options:
    """At most as many tokens as the model can write, up to the end of the translation"""
    most = min(limit, options.max_new_tokens)
    return replace(options, max_new_tokens=most, stop_tokens=(*options.stop_tokens, end))
