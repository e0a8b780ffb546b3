"""Masked language modeling: text with words to guess, for a BERT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from chainrule.autograd import no_grad
from chainrule.data import Corpus, Encoded, Masked, MaskedBatches, Shards, SpecialIds, load_text, split
from chainrule.data.batches.windows import check_length
from chainrule.errors import DataError
from chainrule.generate import fill_masks
from chainrule.models import BERTPretraining
from chainrule.tasks.answer_options import Answer, AnswerOptions
from chainrule.tasks.language_modeling import LanguageModelingTask, shard_parts
from chainrule.tasks.memory import check_memory
from chainrule.tasks.metrics import accuracy
from chainrule.tasks.task import EvalBatches, Task
from chainrule.text import Tokenizer, WordPieceTokenizer
from chainrule.text.wordpiece import SPECIAL
from chainrule.types import IGNORE, Ids

VOCABULARY = 4096  # tokens of a vocabulary made for a text that has none
GUESSES = 5  # words for each gap


@dataclass(frozen=True)
class MaskedLMTask(Task):
    """Documents to train on, documents to evaluate on, and the tokenizer that made them."""

    find = staticmethod(load_text)
    default: ClassVar[str] = LanguageModelingTask.default
    unit: ClassVar[str] = "nats"  # per hidden word, and with next sentence per pair, added up
    model: ClassVar[str] = "a BERT"
    reads: ClassVar[tuple[str, ...]] = ("top_k",)
    special_tokens: ClassVar[tuple[str, ...]] = SPECIAL
    corpus: Corpus | Shards
    tokenizer: Tokenizer
    training: Encoded
    validation: Encoded

    @classmethod
    def of(
        cls, data: Corpus | Shards, tokenizer: Tokenizer | None = None, *, eval_only: bool = False
    ) -> Self:
        """Without a tokenizer a vocabulary of word pieces is made of the training text."""
        if isinstance(data, Shards):
            learned, others, _ = shard_parts(data, tokenizer, eval_only)
            SpecialIds.of(data.tokenizer.special_ids)
            return cls(data, data.tokenizer, learned, others)
        training, validation = ("", data.text) if eval_only else split(data.text)
        tokenizer = tokenizer or WordPieceTokenizer.train(training, VOCABULARY)
        SpecialIds.of(tokenizer.special_ids)
        parts = [Encoded.of([tokenizer.encode(text)]) for text in (training, validation)]
        return cls(data, tokenizer, *parts)

    @classmethod
    def texts(cls, data: Corpus, *, held_out: bool) -> list[str]:
        return LanguageModelingTask.texts(data, held_out=held_out)

    def check(self, sizes: Any, training: Any) -> None:
        """There is more to learn from than a window, and a step fits into memory."""
        check_length("training text", self.training.ids, sizes.block_size)
        check_memory(sizes, training)

    def eval_batches(
        self, model: BERTPretraining, *, batch_size: int, limit: int
    ) -> list[tuple[Masked, Ids]]:
        """Windows of the validation text, always with the same words hidden."""
        batches = list(self.cut(self.validation, model, batch_size).once(limit))
        if all((words == IGNORE).all() for _, words in batches):
            found = f"{len(self.validation.ids):,} tokens, none of them hidden"
            raise DataError(f"validation text: {found} (must be enough that some are: bring more text)")
        return batches

    def eval_rows(self, model: BERTPretraining) -> int:
        """Rows of windows of the validation text."""
        return self.cut(self.validation, model, 1).order.count

    def cut(self, rows: Encoded, model: BERTPretraining, batch_size: int, seed: int = 0) -> MaskedBatches:
        """Windows in random order; other words are hidden in each epoch."""
        special, marks = SpecialIds.of(self.tokenizer.special_ids), map(self.tokenizer.encode, ".?!")
        ends = [int(ids[0]) for ids in marks if len(ids) == 1]  # a mark may be several tokens
        return MaskedBatches(
            rows, special=special, ends=ends, vocab_size=self.tokenizer.vocab_size, batch_size=batch_size,
            block_size=model.config.block_size, next_sentence=model.config.next_sentence, seed=seed,
        )  # fmt: skip

    def scores(self, model: BERTPretraining, batches: EvalBatches) -> dict[str, float | None]:
        """The fraction of hidden words that the model scores highest."""
        with no_grad():
            read = ((model(x.ids, x.mask, x.segments), words) for x, words in batches)
            return {"accuracy": accuracy((logits.numpy().argmax(axis=-1), words) for logits, words in read)}

    @classmethod
    def answer_some(
        cls, model: BERTPretraining, tokenizer: Tokenizer, prompts: Sequence[str], options: AnswerOptions
    ) -> list[Answer]:
        """Of each text the likeliest words for each [MASK] in it, `top_k` of them"""
        k = min(options.sampling.top_k or GUESSES, tokenizer.vocab_size)
        answers = []
        for prompt, found in zip(prompts, fill_masks(model, tokenizer, prompts, k), strict=True):
            masks = [[guess._asdict() for guess in gap] for gap in found.gaps]
            answers.append({"prompt": prompt, "text": found.text, "masks": masks})
        return answers

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        """A line for each gap."""
        gaps = ([f"{guess['token']} {guess['probability']:.4f}" for guess in gap] for gap in answer["masks"])
        return "\n".join("  ".join(gap) for gap in gaps)

    def amount(self) -> str:
        return f"{len(self.training.ids) + len(self.validation.ids):,} tokens of {self.corpus.name}"
