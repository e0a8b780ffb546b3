"""What tasks of models that write share: how a prompt is answered, drawn or searched for, whole or piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

from chainrule.generate import Beam, Request, Sampling, beam_search, run, session
from chainrule.generate.engine.weights import check_format
from chainrule.generate.healing import Prompt
from chainrule.generate.sample import completions, prompted
from chainrule.generate.score import Scorer
from chainrule.generate.session import vocab_size
from chainrule.generate.stopping import StopText
from chainrule.models import LanguageModel
from chainrule.tasks.answer_options import (
    DEFAULTS,
    Answer,
    AnswerOptions,
    Logs,
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
        scorer = cls._scorer(model, options)
        for prompt in prompts:
            before: Logs | None = None
            for request in islice(requests, options.num_samples):
                if scorer and before is None:  # once for all samples of a prompt
                    before = [None, *scorer.score(request.prompt).tolist()]
                yield drawn(tokenizer, prompt, request, before)

    @staticmethod
    def _scorer(model: LanguageModel, options: AnswerOptions) -> Scorer | None:
        """Scores by the weights that write, packed once for all texts; None if no scores are wanted."""
        return Scorer(model, options.weights, options.cache) if options.logprobs else None

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
        scorer = cls._scorer(model, options)
        for prompt in prompts:
            begun = cls.begun(tokenizer, prompt, options.special)
            ids = begun.ids.tolist()
            for found in beam_search(model, begun, beam, weights=options.weights, cache=options.cache):
                stream = StopText(tokenizer, after=ids, special=options.show_special, typed=begun.typed)
                text = "".join([*map(stream.push, found.tokens), stream.close()])
                after = None
                if scorer:
                    after = scorer.score([*ids, *found.tokens])[len(ids) - 1 :].tolist()
                yield searched(tokenizer, prompt, text, found, after)
