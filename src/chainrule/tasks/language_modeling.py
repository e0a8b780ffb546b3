"""Language modeling: two rows of tokens, one to train on and one to evaluate on, cut into windows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from chainrule.data import Batches, BatchSource, Corpus, Shards, Streams, load_text, split, windows
from chainrule.data.batches.windows import check_length
from chainrule.data.encoded import Encoded
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.generate import write
from chainrule.models import LanguageModel
from chainrule.tasks.baselines import count_baselines
from chainrule.tasks.memory import check_memory, context_of, longest_window
from chainrule.tasks.task import EvalBatches
from chainrule.tasks.writing import WritingTask
from chainrule.text import CharTokenizer, Tokenizer, prompt_ids
from chainrule.types import Ids

SAMPLE = 100  # tokens
FEWEST = 8  # tokens of a window: a text of fewer teaches nothing


@dataclass(frozen=True)
class LanguageModelingTask(WritingTask):
    """Tokens to train on, tokens to evaluate on, and the tokenizer that made them."""

    find = staticmethod(load_text)
    default: ClassVar[str] = "pydoc"
    options: ClassVar[tuple[str, ...]] = ("window",)
    corpus: Corpus | Shards
    tokenizer: Tokenizer
    training: Ids
    validation: Ids
    validation_bytes: int
    """Of the validation text in UTF-8, before any tokenizer lost some of it."""
    window: int | None = None
    """Tokens in a row of a batch, if they are fewer than the context of the model."""

    @classmethod
    def of(
        cls,
        data: Corpus | Shards,
        tokenizer: Tokenizer | None = None,
        *,
        eval_only: bool = False,
        window: int | None = None,
    ) -> Self:
        """Every character of a corpus is a token unless a tokenizer says otherwise; shards have their own.

        A text is split before it is encoded, so every tokenizer is evaluated on the same text.
        """
        if isinstance(data, Shards):
            tokens, held_out, size = shard_parts(data, tokenizer, eval_only)
            own = tokenizer or data.tokenizer  # the first has its conventions
            return cls(data, own, tokens.ids, held_out.ids, size, window)
        training, validation = ("", data.text) if eval_only else split(data.text)
        tokenizer = tokenizer or CharTokenizer.train(data.text)
        if tokenizer.vocab_size < 2 and not eval_only:
            raise DataError(
                f"{data.name}: a vocabulary of one token, {tokenizer.piece(0)!r} (must be at least two: with one "
                "token there is nothing to learn; give a text of several characters)"
            )
        size = len(validation.encode("utf-8", "surrogatepass"))
        learned, others = (prompt_ids(tokenizer, part) for part in (training, validation))
        return cls(data, tokenizer, learned, others, size, window)

    @classmethod
    def texts(cls, data: Corpus, *, held_out: bool) -> list[str]:
        return [data.text if held_out else split(data.text)[0]]

    def check(self, sizes: Any, training: Any) -> None:
        """A row has more tokens than a window, and a step fits into memory."""
        window = self.window or context_of(sizes)
        check_length("training text", self.training, window)
        check_length("validation text", self.validation, window)
        check_memory(sizes, training, window)

    def for_start(self, model: LanguageModel, training: Any) -> Self:
        """With windows for which there are memory and text: the context of a model from elsewhere may be long."""
        if model.training_window != model.context:  # it has rows of many contexts
            return self
        least = min(len(self.training), len(self.validation))
        window = min(max(FEWEST, longest_window(model.config, training, least - 1)), model.context)
        return self if window >= model.training_window else replace(self, window=window)

    def facts(self) -> dict[str, Any]:
        return {} if self.window is None else {"window": self.window}

    def amount(self) -> str:
        if isinstance(self.corpus, Shards):
            return f"{len(self.training) + len(self.validation):,} tokens of {self.corpus.name}"
        return f"{len(self.corpus.text):,} characters of {self.corpus.name}"

    def batches(
        self, model: LanguageModel, *, batch_size: int, seed: int = 0, steps: int | None = None
    ) -> BatchSource:
        """Random windows, or streams for a model that carries a state."""
        T = self.window or model.training_window
        return text_batches(model, self.training, T, batch_size=batch_size, seed=seed)

    def eval_batches(self, model: LanguageModel, *, batch_size: int, limit: int) -> list[tuple[Ids, Ids]]:
        """Windows of the validation text, side by side; all of a text that is shorter than a window."""
        if len(self.validation) < 2:
            found = f"{len(self.validation)} token{'s' * (len(self.validation) != 1)}"
            raise DataError(f"validation text: {found} (must be at least 2: the first is only read)")
        T = self._eval_window(model)
        return list(windows(self.validation, batch_size=batch_size, block_size=T, limit=limit))

    def eval_rows(self, model: LanguageModel) -> int:
        """Windows of the validation text, side by side."""
        return (len(self.validation) - 1) // self._eval_window(model)

    def _eval_window(self, model: LanguageModel) -> int:
        """Tokens of a window to evaluate on, at least 1."""
        return max(1, min(self.window or model.training_window, len(self.validation) - 1))

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


def text_batches(
    model: LanguageModel, ids: Ids, block_size: int, *, batch_size: int, seed: int = 0
) -> Batches | Streams:
    """Random windows of `ids`; streams for a model that carries a state from batch to batch."""
    kind = Batches if model.initial_state(1) is None else Streams
    return kind(ids, batch_size=batch_size, block_size=block_size, seed=seed)


def shard_parts(shards: Shards, tokenizer: Tokenizer | None, eval_only: bool) -> tuple[Encoded, Encoded, int]:
    """Documents to train on, mapped into memory, documents to evaluate on, and the bytes of the latter

    The bytes are those of the text, without the end tokens.
    """
    if tokenizer not in (None, shards.tokenizer):
        raise ConfigError(f"{shards.folder}: the shards were made by another tokenizer (leave it out)")
    if not eval_only and not {"train", "validation"} <= shards.parts.keys():
        raise DataError(
            f"{shards.folder}: shards with the parts {', '.join(shards.parts)} "
            "(must have train and validation: build them with --validation 0.05)"
        )
    names = [name for name, part in shards.parts.items() if len(part.ids)] if eval_only else ["validation"]
    training = Encoded.of([]) if eval_only else shards.parts["train"]
    validation = Encoded.joined([shards.parts[name] for name in names])
    return training, validation, sum(_bytes(shards, name) for name in names)


def _bytes(shards: Shards, part: str) -> int:
    size = shards.meta["parts"][part].get("bytes")
    if not (isinstance(size, int) and size > 0):
        raise FormatError(f"{shards.folder}: {part} of {size!r} bytes (must be positive: build it again)")
    return size
