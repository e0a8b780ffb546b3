"""What tasks of models that write share: how a prompt is answered, drawn or searched for, whole or piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from chainrule.generate import Beam, Request, Sampling, beam_search, run, score, session
from chainrule.generate.engine.weights import check_format
from chainrule.generate.healing import Prompt
from chainrule.generate.sample import completions, prompted
from chainrule.generate.session import vocab_size
from chainrule.generate.stopping import StopText
from chainrule.models import LanguageModel
from chainrule.tasks.answer_options import (
    DEFAULTS,
    Answer,
    AnswerOptions,
    Prompts,
    Tell,
    drawn,
    searched,
    silent,
)
from chainrule.tasks.task import Task
from chainrule.text import Tokenizer


class WritingTask(Task):
    """A task of language models, which continue what `begun` makes of a prompt."""

    model: ClassVar[str] = "a language model"
    writes: ClassVar[bool] = True

    @classmethod
    def begun(cls, tokenizer: Tokenizer, prompt: str, special: bool) -> Prompt:
        """What the model is to continue; with `special` names of special tokens in the prompt are these tokens."""
        return prompted(tokenizer, prompt, special)

    @classmethod
    def ended(cls, tokenizer: Tokenizer, sampling: Sampling) -> Sampling:
        """The sampling with what ends an answer of this task."""
        return sampling

    @classmethod
    def answer(
        cls,
        model: LanguageModel,
        tokenizer: Tokenizer,
        prompts: Prompts,
        options: AnswerOptions = DEFAULTS,
        tell: Tell = silent,
    ) -> Iterator[Answer]:
        """Texts that continue the prompts, drawn or searched for."""
        if options.beam:
            yield from cls._searched(model, tokenizer, prompts, options.beam, options)
            return
        rows = [cls.begun(tokenizer, prompt, options.special) for prompt in prompts]
        requests = completions(
            model,
            tokenizer,
            ((begun, cls.ended(tokenizer, how)) for begun in rows for how in options.samplings),
            weights=options.weights,
            cache=options.cache,
            scored=options.logprobs,
            show_special=options.show_special,
            tell=tell,
        )
        each = (prompt for prompt in prompts for _ in range(options.num_samples))
        for prompt, request in zip(each, requests, strict=True):
            before = [None, *cls._scored(model, request.prompt, options)] if options.logprobs else None
            yield drawn(tokenizer, prompt, request, before)

    @staticmethod
    def _scored(model: LanguageModel, ids: Sequence[int], options: AnswerOptions) -> list[float]:
        """ln P of each token but the first, by the weights that write."""
        return score(model, ids, weights=options.weights, cache=options.cache).tolist()

    @classmethod
    def stream(
        cls, model: LanguageModel, tokenizer: Tokenizer, prompt: str, options: AnswerOptions
    ) -> Iterator[str]:
        """The continuation of a prompt as it is written, piece by piece."""
        begun, how = cls.begun(tokenizer, prompt, options.special), cls.ended(tokenizer, options.sampling)
        request = Request(begun, how, vocab_size(model), tokenizer, show_special=options.show_special)
        check_format(options.weights)
        return (request.piece for _ in run(session(model, options.weights, cache=options.cache), [request]))

    @classmethod
    def _searched(
        cls, model: LanguageModel, tokenizer: Tokenizer, prompts: Prompts, beam: Beam, options: AnswerOptions
    ) -> Iterator[Answer]:
        for prompt in prompts:
            begun = cls.begun(tokenizer, prompt, options.special)
            ids = begun.ids.tolist()
            for found in beam_search(model, begun, beam, weights=options.weights, cache=options.cache):
                stream = StopText(tokenizer, after=ids, special=options.show_special, typed=begun.typed)
                text = "".join([*map(stream.push, found.tokens), stream.close()])
                after = None
                if options.logprobs:
                    after = cls._scored(model, [*ids, *found.tokens], options)[len(ids) - 1 :]
                yield searched(tokenizer, prompt, text, found, after)
