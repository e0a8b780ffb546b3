"""Texts into translations: a prompt is a source, and the text that is written is its translation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from chainrule.data import pad
from chainrule.errors import DataError
from chainrule.generate import Beam, Request, Sampling, Translation, Translator, run, search, translate
from chainrule.models import Seq2Seq
from chainrule.tasks.answer_options import Answer, token_logprobs
from chainrule.text import Tokenizer

TOGETHER = 32  # sources in one loop
SHOWN = 40  # characters of a source that a message shows
# What begins and ends a target.
MARKS = (("<s>", "</s>"), ("[CLS]", "[SEP]"), ("<|endoftext|>", "<|endoftext|>"))

Options = TypeVar("Options", Sampling, Beam)


def translations(
    model: Seq2Seq,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    options: Sequence[Sampling] | Beam,
    *,
    scored: bool = False,
) -> Iterator[Answer]:
    """Of each source one translation for each `Sampling`, or the best that a search finds"""
    start, end = marks(tokenizer)
    limit = model.config.block_size
    encoded = [tokenizer.encode(source) for source in sources]
    for source, ids in zip(sources, encoded, strict=True):
        if not ids.size:
            raise DataError(f"sample: prompt {source!r} (must have at least one token to translate)")
        if ids.size > limit:  # a translation of a part would pass for one of the whole
            raise DataError(
                f"sample: prompt {_shorten(source)!r} of {ids.size:,} tokens "
                f"(must be at most {limit:,}, the context of the model: make it shorter)"
            )
    translator = Translator(model)
    for first in range(0, len(sources), TOGETHER):
        some = sources[first : first + TOGETHER]
        texts = Translation(translator, *pad(encoded[first : first + TOGETHER]))
        if isinstance(options, Beam):
            yield from _searched(texts, tokenizer, some, start, fitted(options, limit, end))
        else:
            fit = [fitted(sampling, limit, end) for sampling in options]
            yield from _drawn(texts, tokenizer, some, start, fit, scored)


def translate_texts(model: Seq2Seq | Translator, tokenizer: Tokenizer, sources: Sequence[str]) -> list[str]:
    """The likeliest target of each source, token by token; of a source beyond the context its beginning is read"""
    start, end = marks(tokenizer)
    ids, mask = pad([tokenizer.encode(text)[: model.config.block_size] for text in sources])
    return [tokenizer.decode(row) for row in translate(model, ids, mask, start=start, end=end)]


def marks(tokenizer: Tokenizer) -> tuple[int, int]:
    """The ids of the tokens that begin and end a target."""
    ids = tokenizer.special_ids
    for start, end in MARKS:
        if start in ids and end in ids:
            return ids[start], ids[end]
    raise DataError(
        f"tokenizer: special tokens {', '.join(ids) or 'none'} (must have <s> and </s>: train it with "
        "--special-tokens '<s>' '</s>')"
    )


def _searched(
    texts: Translation, tokenizer: Tokenizer, sources: Sequence[str], start: int, beam: Beam
) -> Iterator[Answer]:
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
) -> Iterator[Answer]:
    V = tokenizer.vocab_size
    texts.keep([i for i, _ in enumerate(sources) for _ in samplings])
    requests = [Request([start], s, V, tokenizer, scored=scored) for _ in sources for s in samplings]
    for _ in run(texts, requests):
        pass
    for i, request in enumerate(requests):
        source = sources[i // len(samplings)]
        result: Answer = {"prompt": source, "text": request.text, "seed": request.sampling.seed}
        result |= {"finish": request.finish}
        if request.logprobs is not None:
            result |= {"logprobs": token_logprobs(tokenizer, request.tokens, request.logprobs)}
        yield result


def fitted(options: Options, limit: int, end: int) -> Options:
    """The options with at most `limit` tokens, and `end` as a stop token"""
    most = min(limit, options.max_new_tokens)
    return replace(options, max_new_tokens=most, stop_tokens=(*options.stop_tokens, end))


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…"
