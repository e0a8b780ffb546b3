"""Texts into translations: a prompt is a source, and the text that is written is its translation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from chainrule.data import pad
from chainrule.errors import DataError
from chainrule.generate import Beam, Request, Sampling, Translation, Translator, run, search, translate
from chainrule.models import EncoderDecoder
from chainrule.tasks.answer_options import Answer, token_logprobs
from chainrule.text import Tokenizer
from chainrule.types import Ids

TOGETHER = 32  # sources in one loop
SHOWN = 40  # characters of a source that a message shows
# What begins and ends a text.
MARKS = (("<s>", "</s>"), ("[CLS]", "[SEP]"), ("<|endoftext|>", "<|endoftext|>"))
PADS = ("<pad>", "[PAD]")

Options = TypeVar("Options", Sampling, Beam)


class Marks(NamedTuple):
    """The ids of the tokens around a source, and of those that begin and end a target."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    start: int
    end: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, start: str) -> Marks:
        """Of a model whose targets start in this way (`Seq2SeqConfig.target_start`)."""
        ids = tokenizer.special_ids
        if start == "bos":
            for first, last in MARKS:
                if first in ids and last in ids:
                    return cls((), (), ids[first], ids[last])
            raise DataError(
                f"tokenizer: special tokens {', '.join(ids) or 'none'} (must have <s> and </s>: train it with "
                "--special-tokens '<s>' '</s>')"
            )
        wanted = ("</s>", "<pad>") if start == "pad" else ("<s>", "</s>")
        pad = next((name for name in PADS if name in ids), "")
        if "</s>" not in ids or (start == "pad" and not pad) or (start == "eos" and "<s>" not in ids):
            raise DataError(
                f"tokenizer: special tokens {', '.join(ids) or 'none'} (must have {' and '.join(wanted)})"
            )
        end = ids["</s>"]
        return cls((), (end,), ids[pad], end) if start == "pad" else cls((ids["<s>"],), (end,), end, end)

    @property
    def extra(self) -> int:
        """Tokens around a source."""
        return len(self.before) + len(self.after)

    def around(self, source: Ids, limit: int) -> Ids:
        """The source as the model reads it; one that is too long is cut to `limit` tokens in all"""
        if not self.extra:
            return source
        return np.concatenate([self.before, source[: limit - self.extra], self.after]).astype(source.dtype)


def translations(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    options: Sequence[Sampling] | Beam,
    *,
    scored: bool = False,
) -> Iterator[Answer]:
    """Of each source one translation for each `Sampling`, or the best that a search finds"""
    marks, limit = Marks.of(tokenizer, model.config.target_start), model.config.block_size
    encoded = [tokenizer.encode(source) for source in sources]
    for source, ids in zip(sources, encoded, strict=True):
        if not ids.size:
            raise DataError(f"sample: prompt {source!r} (must have at least one token to translate)")
        if ids.size + marks.extra > limit:  # a translation of a part would pass for one of the whole
            raise DataError(
                f"sample: prompt {_shorten(source)!r} of {ids.size:,} tokens "
                f"(must be at most {limit:,}, the context of the model: make it shorter)"
            )
    encoded = [marks.around(ids, limit) for ids in encoded]
    translator = Translator(model)
    for first in range(0, len(sources), TOGETHER):
        some = sources[first : first + TOGETHER]
        texts = Translation(translator, *pad(encoded[first : first + TOGETHER]))
        if isinstance(options, Beam):
            yield from _searched(texts, tokenizer, some, marks.start, fitted(options, limit, marks.end))
        else:
            fit = [fitted(sampling, limit, marks.end) for sampling in options]
            yield from _drawn(texts, tokenizer, some, marks.start, fit, scored)


def translate_texts(
    model: EncoderDecoder | Translator, tokenizer: Tokenizer, sources: Sequence[str]
) -> list[str]:
    """The likeliest target of each source, token by token; of a source beyond the context its beginning is read"""
    marks, limit = Marks.of(tokenizer, model.config.target_start), model.config.block_size
    ids, mask = pad([marks.around(tokenizer.encode(text)[:limit], limit) for text in sources])
    found = translate(model, ids, mask, start=marks.start, end=marks.end)
    return [tokenizer.decode(row) for row in found]


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
    V = texts.config.vocab_size
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
