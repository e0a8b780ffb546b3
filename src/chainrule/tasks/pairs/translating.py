"""Texts into translations: a prompt is a source, and the text that is written is its translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from chainrule.data import pad
from chainrule.errors import DataError
from chainrule.generate import Beam, Request, Sampling, Translation, Translator, run, search, translate
from chainrule.models import EncoderDecoder
from chainrule.tasks.answer_options import Answer, AnswerOptions, Prompts, drawn, searched, shorten
from chainrule.text import Marks, Tokenizer
from chainrule.types import Ids

TOGETHER = 32  # sources, or translations, in one loop

Options = TypeVar("Options", Sampling, Beam)


def translations(
    model: EncoderDecoder, tokenizer: Tokenizer, prompts: Prompts, options: AnswerOptions
) -> Iterator[Answer]:
    """Of each source as many translations as are asked for: drawn, or the best that a search finds"""
    marks, limit = Marks.of(tokenizer.special_ids, model.config.target_start), model.config.block_size
    encoded = [marks.around(_source(tokenizer, prompt, limit, marks.extra), limit) for prompt in prompts]

    def fitted(how: Options) -> Options:
        """With as many tokens as the model can write at most, and the end of a target as a stop token"""
        most = min(limit, how.max_new_tokens)
        return replace(how, max_new_tokens=most, stop_tokens=(*how.stop_tokens, marks.end))

    translator = Translator(model, options.weights, options.cache)
    if options.beam:
        how = fitted(options.beam)
        for first in range(0, len(prompts), TOGETHER):
            some = prompts[first : first + TOGETHER]
            texts = Translation(translator, *pad(encoded[first : first + TOGETHER]))
            found = search(texts, [[marks.start]] * len(some), how)
            for prompt, hypotheses in zip(some, found, strict=True):
                for each in hypotheses:
                    yield searched(tokenizer, prompt, tokenizer.decode(each.tokens), each)
        return
    asked = ((i, fitted(sampling)) for i in range(len(prompts)) for sampling in options.samplings)
    while part := list(islice(asked, TOGETHER)):
        rows = [i for i, _ in part]
        texts = Translation(translator, *pad(encoded[rows[0] : rows[-1] + 1]))
        texts.keep([i - rows[0] for i in rows])
        V, scored = texts.config.vocab_size, options.logprobs
        requests = [Request([marks.start], s, V, tokenizer, scored=scored) for _, s in part]
        for _ in run(texts, requests):
            pass
        yield from (drawn(tokenizer, prompts[i], request) for i, request in zip(rows, requests, strict=True))


def translate_texts(
    model: EncoderDecoder | Translator, tokenizer: Tokenizer, sources: Prompts, beam: int = 1
) -> list[str]:
    """The best target of each source that a search of width `beam` finds; 1 takes the likeliest token again and again

    Of a source beyond the context its beginning is read.
    """
    marks, limit = Marks.of(tokenizer.special_ids, model.config.target_start), model.config.block_size
    ids, mask = pad([marks.around(tokenizer.encode(text)[:limit], limit) for text in sources])
    found = translate(model, ids, mask, start=marks.start, end=marks.end, beam=beam)
    return [tokenizer.decode(row) for row in found]


def _source(tokenizer: Tokenizer, prompt: str, limit: int, extra: int) -> Ids:
    ids = tokenizer.encode(prompt)
    if not ids.size:
        raise DataError(f"sample: prompt {prompt!r} (must have at least one token to translate)")
    if ids.size + extra > limit:  # a translation of a part would pass for one of the whole
        raise DataError(
            f"sample: prompt {shorten(prompt, 40)!r} of {ids.size:,} tokens "
            f"(must be at most {limit:,}, the context of the model: make it shorter)"
        )
    return ids
