"""Language modeling: two rows of tokens, one to train on and one to evaluate on, cut into windows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from chainrule.data import (
    BUILT_IN,
    Batches,
    BatchSource,
    Corpus,
    Encoded,
    Shards,
    Streams,
    load,
    split,
    windows,
)
from chainrule.data.batches.windows import check_length
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.generate import Beam, Request, beam_search, complete, score, write
from chainrule.generate.sample import encoded
from chainrule.models import LanguageModel
from chainrule.tasks.answer_options import Answer, AnswerOptions, show_text, token_logprobs
from chainrule.tasks.baselines import count_baselines
from chainrule.tasks.memory import check_memory
from chainrule.tasks.task import EvalBatches, Task
from chainrule.text import CharTokenizer, TextStream, Tokenizer, prompt_ids
from chainrule.types import Ids

SAMPLE = 100  # tokens


@dataclass(frozen=True)
class LanguageModelingTask(Task):
    """Tokens to train on, tokens to evaluate on, and the tokenizer that made them."""

    default: ClassVar[str] = "pydoc"
    model: ClassVar[str] = "a language model"
    writes: ClassVar[bool] = True
    corpus: Corpus | Shards
    tokenizer: Tokenizer
    training: Ids
    validation: Ids
    validation_bytes: int
    """Of the validation text in UTF-8, before any tokenizer lost some of it."""

    @classmethod
    def find(cls, name: str | os.PathLike[str]) -> Corpus | Shards:
        """What `data.load` finds by this name, or the shards in this directory."""
        if name not in BUILT_IN and Path(name).is_dir():
            return Shards(Path(name))
        return load(name)

    @classmethod
    def of(
        cls, data: Corpus | Shards, tokenizer: Tokenizer | None = None, *, eval_only: bool = False
    ) -> Self:
        """Every character of a corpus is a token unless a tokenizer says otherwise; shards have their own.

        A text is split before it is encoded, so every tokenizer is evaluated on the same text.
        """
        if isinstance(data, Shards):
            if tokenizer not in (None, data.tokenizer):
                raise ConfigError(f"{data.folder}: the shards were made by another tokenizer (leave it out)")
            task = cls._of_shards(data, eval_only)
            return replace(
                task, tokenizer=tokenizer or task.tokenizer
            )  # the model's own knows its conventions
        training, validation = ("", data.text) if eval_only else split(data.text)
        tokenizer = tokenizer or CharTokenizer.train(data.text)
        if tokenizer.vocab_size < 2 and not eval_only:
            raise DataError(
                f"{data.name}: a vocabulary of one token, {tokenizer.piece(0)!r} (must be at least two: with one "
                "token there is nothing to learn; give a text of several characters)"
            )
        size = len(validation.encode("utf-8", "surrogatepass"))
        return cls(data, tokenizer, prompt_ids(tokenizer, training), prompt_ids(tokenizer, validation), size)

    @classmethod
    def _of_shards(cls, shards: Shards, eval_only: bool) -> Self:
        """Tokens on disk, mapped into memory. The bytes are those of the documents, without their end tokens."""
        if not eval_only and not {"train", "validation"} <= shards.parts.keys():
            raise DataError(
                f"{shards.folder}: shards with the parts {', '.join(shards.parts)} "
                "(must have train and validation: build them with --validation 0.05)"
            )
        parts = eval_parts(shards, eval_only)
        size = sum(_bytes(shards, name) for name in parts)
        training = np.empty(0, np.int32) if eval_only else shards.parts["train"].ids
        return cls(shards, shards.tokenizer, training, joined(shards, parts).ids, size)

    def sizes(self) -> dict[str, Any]:
        """The tokenizer decides the vocabulary."""
        return {"vocab_size": self.tokenizer.vocab_size}

    def check(self, sizes: Any, training: Any) -> None:
        """A row has more tokens than the context, and a step fits into memory."""
        check_length("training text", self.training, sizes.block_size)
        check_length("validation text", self.validation, sizes.block_size)
        check_memory(sizes, training)

    def amount(self) -> str:
        """How much data there are, in words."""
        if isinstance(self.corpus, Shards):
            return f"{len(self.training) + len(self.validation):,} tokens of {self.corpus.name}"
        return f"{len(self.corpus.text):,} characters of {self.corpus.name}"

    def batches(
        self, model: LanguageModel, *, batch_size: int, seed: int = 0, steps: int | None = None
    ) -> BatchSource:
        """Random windows, or streams for a model that carries a state."""
        return text_batches(model, self.training, model.training_window, batch_size=batch_size, seed=seed)

    def eval_batches(self, model: LanguageModel, *, batch_size: int, limit: int) -> list[tuple[Ids, Ids]]:
        """Windows of the validation text, side by side; all of a text that is shorter than a window."""
        if len(self.validation) < 2:
            found = f"{len(self.validation)} token{'s' * (len(self.validation) != 1)}"
            raise DataError(f"validation text: {found} (must be at least 2: the first is only read)")
        T = min(model.training_window, len(self.validation) - 1)
        return list(windows(self.validation, batch_size=batch_size, block_size=T, limit=limit))

    def scores(self, model: LanguageModel, batches: EvalBatches) -> dict[str, float | None]:
        """How many tokens were predicted."""
        return {"tokens": sum(targets.size for _, targets in batches)}

    def measures(self, nats: float, batches: EvalBatches) -> dict[str, float]:
        """In bits per byte, the same unit for every tokenizer."""
        return {"bits_per_byte": self.bits_per_byte(nats)}

    def bits_per_byte(self, nats: float) -> float:
        """A loss in nats per token as bits per byte of the validation text."""
        return nats / math.log(2) * len(self.validation) / self.validation_bytes

    def loss_in_words(self, nats: float, batches: EvalBatches) -> str:
        """Of characters in bits per character; tokens of several characters are compared by the byte."""
        if isinstance(self.tokenizer, CharTokenizer):
            return f"{nats:.4f} nats = {nats / math.log(2):.4f} bits per character"
        return super().loss_in_words(nats, batches)

    def baselines(self) -> dict[str, float]:
        """What counting reaches on the validation text."""
        return count_baselines(self.training, self.validation, self.tokenizer.vocab_size)

    def sample(self, model: LanguageModel, seed: int) -> str:
        """What the model writes without a prompt."""
        return "".join(write(model, self.tokenizer, "", SAMPLE, seed=seed))

    @classmethod
    def answer(
        cls,
        model: LanguageModel,
        tokenizer: Tokenizer,
        prompts: Sequence[str],
        options: AnswerOptions | None = None,
        tell: Callable[[int], None] = lambda tokens: None,
    ) -> Iterator[Answer]:
        """Texts that continue the prompts, drawn or searched for."""
        options = options or AnswerOptions()
        if options.beam:
            yield from _searched(model, tokenizer, prompts, options.beam, options)
        else:
            yield from _drawn(model, tokenizer, prompts, options, tell)

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        """The prompt and its continuation, with the seed or the score."""
        return show_text(answer, number)

    @classmethod
    def stream(
        cls, model: LanguageModel, tokenizer: Tokenizer, prompt: str, options: AnswerOptions
    ) -> Iterator[str]:
        """The continuation of a prompt as it is written, piece by piece."""
        drawn = {name: value for name, value in vars(options.sampling).items() if name != "max_new_tokens"}
        drawn |= {"special": options.special, "show_special": options.show_special}
        n = options.sampling.max_new_tokens
        return write(model, tokenizer, prompt, n, weights=options.weights, **drawn)


def text_batches(
    model: LanguageModel, ids: Ids, block_size: int, *, batch_size: int, seed: int = 0
) -> Batches | Streams:
    """Random windows of `ids`; streams for a model that carries a state from batch to batch."""
    kind = Batches if model.initial_state(1) is None else Streams
    return kind(ids, batch_size=batch_size, block_size=block_size, seed=seed)


def eval_parts(shards: Shards, eval_only: bool) -> list[str]:
    """The parts of shards to evaluate on."""
    return [name for name, part in shards.parts.items() if len(part.ids)] if eval_only else ["validation"]


def joined(shards: Shards, names: Sequence[str]) -> Encoded:
    """Some parts as one; several of them are copied into memory."""
    parts = [shards.parts[name] for name in names]
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.ids) for part in parts)])
    starts = [part.starts[:-1] + first for part, first in zip(parts, before[:-1], strict=True)]
    return Encoded(np.concatenate([part.ids for part in parts]), np.concatenate([*starts, before[-1:]]))


def _bytes(shards: Shards, part: str) -> int:
    size = shards.meta["parts"][part].get("bytes")
    if not (isinstance(size, int) and size > 0):
        raise FormatError(f"{shards.folder}: {part} of {size!r} bytes (must be positive: build it again)")
    return size


def _drawn(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    options: AnswerOptions,
    tell: Callable[[int], None],
) -> Iterator[Answer]:
    seeds = range(options.sampling.seed, options.sampling.seed + options.num_samples)
    samplings = [replace(options.sampling, seed=seed) for seed in seeds] * len(prompts)
    each = [prompt for prompt in prompts for _ in seeds]
    requests = complete(
        model,
        tokenizer,
        each,
        samplings,
        weights=options.weights,
        scored=options.logprobs,
        special=options.special,
        show_special=options.show_special,
        tell=tell,
    )
    for prompt, request in zip(each, requests, strict=True):
        result = {"prompt": prompt, "text": request.text, "seed": request.sampling.seed}
        yield result | {"finish": request.finish} | _logprobs(model, tokenizer, request)


def _logprobs(model: LanguageModel, tokenizer: Tokenizer, request: Request) -> Answer:
    if request.logprobs is None:
        return {}
    before = [None, *score(model, request.prompt).tolist()]
    return {
        "prompt_logprobs": token_logprobs(tokenizer, request.prompt, before),
        "logprobs": token_logprobs(tokenizer, request.tokens, request.logprobs),
    }


def _searched(
    model: LanguageModel, tokenizer: Tokenizer, prompts: Sequence[str], beam: Beam, options: AnswerOptions
) -> Iterator[Answer]:
    for prompt in prompts:
        ids = encoded(tokenizer, prompt, options.special)
        for hypothesis in beam_search(model, ids, beam, weights=options.weights):
            stream = TextStream(tokenizer, after=ids, special=options.show_special)
            text = "".join([*map(stream.push, hypothesis.tokens), stream.close()])
            result = {
                "prompt": prompt,
                "text": text,
                "logprob": hypothesis.logprob,
                "score": hypothesis.score,
            }
            if options.logprobs:
                logs = score(model, [*ids, *hypothesis.tokens])[len(ids) - 1 :].tolist()
                result |= {"logprobs": token_logprobs(tokenizer, hypothesis.tokens, logs)}
            yield result | {"finish": "stop" if hypothesis.finished else "length"}
