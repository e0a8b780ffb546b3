"""Texts into translations: a prompt is a source, and the text that is written is its translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from chainrule.data import pad
from chainrule.errors import DataError
from chainrule.generate import Beam, Request, Sampling, Translation, Translator, run, search, translate
from chainrule.models import EncoderDecoder
from chainrule.tasks.answer_options import Answer, AnswerOptions, Prompts, drawn, searched, shorten
from chainrule.text import Marks, Tokenizer
from chainrule.types import Ids

TOGETHER = 32  # sources in one loop

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

    translator, samplings = Translator(model), [fitted(sampling) for sampling in options.samplings]
    for first in range(0, len(prompts), TOGETHER):
        some = prompts[first : first + TOGETHER]
        texts = Translation(translator, *pad(encoded[first : first + TOGETHER]))
        if options.beam:
            found = search(texts, [[marks.start]] * len(some), fitted(options.beam))
            for prompt, hypotheses in zip(some, found, strict=True):
                for each in hypotheses:
                    yield searched(tokenizer, prompt, tokenizer.decode(each.tokens), each)
            continue
        rows = [i for i, _ in enumerate(some) for _ in samplings]
        texts.keep(rows)
        V, scored = texts.config.vocab_size, options.logprobs
        requests = [Request([marks.start], s, V, tokenizer, scored=scored) for _ in some for s in samplings]
        for _ in run(texts, requests):
            pass
        yield from (drawn(tokenizer, some[i], request) for i, request in zip(rows, requests, strict=True))


def translate_texts(model: EncoderDecoder | Translator, tokenizer: Tokenizer, sources: Prompts) -> list[str]:
    """The likeliest target of each source, token by token; of a source beyond the context its beginning is read"""
    marks, limit = Marks.of(tokenizer.special_ids, model.config.target_start), model.config.block_size
    ids, mask = pad([marks.around(tokenizer.encode(text)[:limit], limit) for text in sources])
    found = translate(model, ids, mask, start=marks.start, end=marks.end)
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
