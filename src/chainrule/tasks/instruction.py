"""Instruction tuning: conversations, of which a language model learns the answers and only reads the rest.

The loss is that of language modeling, on the tokens of the assistant and the token that ends its turn. Conversations
are packed into rows up to the window, in which none sees another; to be evaluated each stands alone in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from chainrule.data import Conversation, ConversationBatches, ConversationCorpus, load_conversations, spread
from chainrule.data.batches.conversations import Chats, Fitted
from chainrule.data.read.tabular.reading import copies_left_out
from chainrule.errors import ConfigError, DataError
from chainrule.generate import Sampling
from chainrule.generate.chat import stopping
from chainrule.generate.healing import Prompt
from chainrule.models import LanguageModel, TransformerLM, describe, with_tokens
from chainrule.models.registry import KNOWN
from chainrule.models.suited import Begun, Suited, for_tuning
from chainrule.models.tuning import Method
from chainrule.tasks.answer_options import Answer, AnswerOptions, shorten, show_text
from chainrule.tasks.memory import check_memory, longest_window
from chainrule.tasks.metrics import Share
from chainrule.tasks.task import EvalBatches
from chainrule.tasks.writing import WritingTask
from chainrule.text import CharTokenizer, Tokenizer, chat_ids
from chainrule.text.chat.masking import masked_ids
from chainrule.text.chat.roles import chat_tokenizer, own_format

SAMPLE = 100  # tokens
FEWEST = 8  # tokens of a window
TRIED = 256  # conversations by which the number of rows is estimated


@dataclass(frozen=True)
class InstructionTask(WritingTask):
    """Conversations to train on and to evaluate on, encoded in the chat format of their tokenizer."""

    name: ClassVar[str] = "instruction"
    find = staticmethod(load_conversations)
    default: ClassVar[str] = "docstrings"
    model: ClassVar[str] = "a language model that answers"
    used_by: ClassVar[str] = "chat"
    options: ClassVar[tuple[str, ...]] = ("window",)
    corpus: ConversationCorpus
    tokenizer: Tokenizer
    training: Chats
    validation: Chats
    questions: tuple[str, ...] = ()
    """Of the conversations to evaluate on."""
    added: int = 0
    """Tokens that the tokenizer was given for the chat format."""
    window: int | None = None
    """Tokens in a row of a batch."""

    @classmethod
    def of(
        cls,
        data: ConversationCorpus,
        tokenizer: Tokenizer | None = None,
        *,
        eval_only: bool = False,
        window: int | None = None,
    ) -> Self:
        """Every character is a token unless a tokenizer says otherwise."""
        known = tokenizer or CharTokenizer.train("".join(cls.texts(data, held_out=True)))
        chats = chat_tokenizer(known)
        training, validation = ([], list(data.conversations)) if eval_only else data.parts()
        encoded = _encoded(data, chats, training), _encoded(data, chats, validation)
        questions = tuple(each.question for each in validation)
        return cls(data, chats, *encoded, questions, chats.vocab_size - known.vocab_size, window)

    @classmethod
    def texts(cls, data: ConversationCorpus, *, held_out: bool) -> list[str]:
        """What is said, and the space that the format puts between a role and its text."""
        some = data.conversations if held_out else data.parts()[0]
        return [" ", *(turn.content for each in some for turn in each.turns)]

    @classmethod
    def suited(cls, data: ConversationCorpus, **begun: Unpack[Begun]) -> Suited:
        """A tenth of the learning rate, and a few passes over the rows, whose number is estimated from some of them."""
        start, tokenizer = begun.get("start"), begun.get("tokenizer")
        if start is None or tokenizer is None:
            return Suited({}, {})
        training = data.parts()[0]
        some = _encoded(data, chat_tokenizer(tokenizer), [training[i] for i in spread(len(training), TRIED)])
        context = start.context
        pairs = np.minimum(some.documents.lengths - 1, context)
        window = min(context, int(pairs.max()))
        rows = -(-int(pairs.mean() * len(training)) // window)
        return for_tuning(rows, KNOWN[describe(start)["model_type"]].lr)

    # -- the model -------------------------------------------------------------------------------------------------

    def begun_with(self, model: Any, seed: int, *, given_up: bool = False) -> Any:
        """The model with rows for the tokens of the chat format, if it has not learned one."""
        if not self.added:
            return model
        return with_tokens(model, self.tokenizer.vocab_size, self.added, seed, shared=given_up)

    def tuned_by(self, method: Method) -> Method:
        """Rows of new tokens learn too: frozen, the model would not learn to end its answers."""
        if not (self.added and method.alone):
            return method
        last = self.tokenizer.vocab_size
        return replace(method, tokens=tuple(range(last - self.added, last)))

    def check(self, sizes: Any, training: Any) -> None:
        """A step fits into memory."""
        check_memory(sizes, training, self.window)

    def for_start(self, model: LanguageModel, training: Any) -> Self:
        """With rows as long as the longest conversation, if there are memory and context for it."""
        longest = max(int(part.documents.lengths.max(initial=0)) for part in (self.training, self.validation))
        window = max(FEWEST, longest_window(model.config, training, longest - 1))
        return replace(self, window=min(window, model.context))

    def fitted(self, model: LanguageModel) -> Self:
        """With rows of a length that the model reads; it must be able to keep the conversations of a row apart."""
        if not isinstance(model, TransformerLM):
            rule = "must be a transformer that writes: a gpt, llama or neox"
            raise ConfigError(
                f"instruction: a {type(model).__name__} does not learn from conversations ({rule})"
            )
        return replace(self, window=min(self.window or model.training_window, model.context))

    # -- batches ---------------------------------------------------------------------------------------------------

    def batches(
        self, model: LanguageModel, *, batch_size: int, seed: int = 0, steps: int | None = None
    ) -> ConversationBatches:
        """Rows of conversations, in random order."""
        return self.cut(self.training, model, batch_size, seed)

    def cut(
        self, rows: Chats, model: LanguageModel, batch_size: int, seed: int = 0, part: str = ""
    ) -> ConversationBatches:
        T = self.window or model.training_window
        return ConversationBatches(rows, batch_size=batch_size, block_size=T, seed=seed, part=part)

    def eval_batches(self, model: LanguageModel, *, batch_size: int, limit: int) -> EvalBatches:
        """Conversations to evaluate on, each alone in its row."""
        some = self.validation.some(spread(len(self.validation.documents), limit))
        return list(self.cut(some, model, batch_size, part=" to evaluate on").once())

    def eval_rows(self, model: LanguageModel) -> int:
        return len(Fitted.of(self.validation, self.window or model.training_window).kept)

    def share(self, model: LanguageModel, batches: EvalBatches) -> Share:
        used = sum(len(targets) for _, targets in batches)
        return Share(used, max(used, self.eval_rows(model)), "conversations")

    def scores(self, model: LanguageModel, batches: EvalBatches) -> dict[str, float | None]:
        """How many tokens of answers were predicted, and conversations that are longer than the window, if any."""
        counted: dict[str, float | None] = {
            "tokens": sum(model.counts(inputs, targets)[0] for inputs, targets in batches)
        }
        lost = Fitted.of(self.validation, self.window or model.training_window)
        long = {"cut_at_the_end": len(lost.cut), "dropped": len(lost.dropped)}
        return counted | {name: count for name, count in long.items() if count}

    # -- facts -----------------------------------------------------------------------------------------------------

    @cached_property
    def kept(self) -> Fitted:
        """The conversations to train on as they fit into the window, and what became of the others."""
        if self.window is None:
            raise DataError("instruction: the window is not known (must be fitted to a model)")
        return Fitted.of(self.training, self.window)

    def amount(self) -> str:
        """How much data there is, how much of it was cut, and how much is learned."""
        corpus, learned = self.corpus, self.training
        talks, held_out = (f"{len(part.documents):,}" for part in (self.training, self.validation))
        copies = copies_left_out(corpus.copies)
        said = f"{talks} conversations of {corpus.name} and {held_out} to evaluate on{copies}"
        if self.window is not None:
            others = Fitted.of(self.validation, self.window)
            lost = f", of those to evaluate on {others}" if len(others.cut) or len(others.dropped) else ""
            said, learned = f"{said}; rows of {self.window:,} tokens: {self.kept}{lost}", self.kept.chats
        counts = (int(tokens.sum()) for tokens in (learned.answers, learned.prompts))
        return "{}; {:,} tokens of answers are learned, {:,} are only read".format(said, *counts)

    def facts(self) -> dict[str, Any]:
        """The window; and for readers how many tokens are read and learned, and what was cut."""
        counts = {
            name: {
                "conversations": len(part.documents),
                "prompt_tokens": int(part.prompts.sum()),
                "response_tokens": int(part.answers.sum()),
            }
            for name, part in (("training", self.kept.chats), ("validation", self.validation))
        }
        kept = self.kept
        lost = {"cut": len(kept.cut), "dropped": len(kept.dropped)}
        return {"window": self.window, "conversations": counts | lost}

    # -- answers ---------------------------------------------------------------------------------------------------

    @classmethod
    def begun(cls, tokenizer: Tokenizer, prompt: str, special: bool) -> Prompt:
        """The prompt as the turn of a user, and the beginning of the answer."""
        format = own_format(tokenizer)
        return Prompt(chat_ids(tokenizer, format, [{"role": "user", "content": prompt}], special=special))

    @classmethod
    def ended(cls, tokenizer: Tokenizer, sampling: Sampling) -> Sampling:
        return stopping(sampling, tokenizer, own_format(tokenizer))

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        return show_text(answer, number, "\n")

    def sample(self, model: LanguageModel, seed: int) -> str:
        """A question to evaluate on, and what the model answers."""
        question = self.questions[0]
        how = Sampling(max_new_tokens=SAMPLE, seed=seed)
        pieces = self.stream(model, self.tokenizer, question, AnswerOptions(sampling=how))
        return f"{shorten(question)}\n{''.join(pieces).strip()}"


def _encoded(data: ConversationCorpus, tokenizer: Tokenizer, some: list[Conversation]) -> Chats:
    """Some conversations of a corpus; a character that the tokenizer lacks is refused with its place and a way out."""
    try:
        return encode(tokenizer, some)
    except DataError as error:
        for each in some:
            try:
                encode(tokenizer, [each])
            except DataError as here:
                place = data.places.get(each, f"the question {shorten(each.question, 40)!r}")
                fix = "tune a model with a tokenizer of bytes, as train --tokenizer bpe:4000 makes it"
                raise DataError(f"{data.name}: {place}: {here}; {fix}") from error
        raise


def encode(tokenizer: Tokenizer, conversations: list[Conversation]) -> Chats:
    """Conversations in the chat format of a tokenizer, with the tokens that are learned."""
    format = own_format(tokenizer)
    return Chats.of(masked_ids(tokenizer, format, [each.messages for each in conversations]))
