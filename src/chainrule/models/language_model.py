"""What training, generation and inspection know of a model of text: ids in, scores of the next token out."""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError
from chainrule.models.microbatch import Batch
from chainrule.models.model import Model
from chainrule.nn import Embedding, Linear, SoftPrompt, TokenRows
from chainrule.nn.apart import Apart, apart
from chainrule.types import IGNORE, as_ids

WIDE = 512  # from this width on a microbatch of 1,024 tokens costs time


class LanguageModel(Model):
    """A model of text. `config` has at least `vocab_size` and `block_size`, the longest context."""

    any_length: ClassVar[bool] = False
    """Reads rows longer than `block_size` too."""

    @property
    def training_window(self) -> int:
        """Tokens in a row of a training batch."""
        return self.context

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> logits (B, T, V): position t scores what follows ids[:, : t + 1]"""
        raise NotImplementedError

    def decoder(self, ids: Array, *memory: Any) -> Tensor:
        return self(ids)

    def loss(self, inputs: Array, targets: Array) -> Tensor:
        """inputs (B, T), targets (B, T) -> mean negative log-likelihood of the targets that count, in nats"""
        return ops.cross_entropy(self(inputs), targets=targets, ignore_index=IGNORE)

    def logprobs(self, inputs: Array, targets: Array, *, temperature: float = 1.0) -> Tensor:
        """inputs (B, T), targets (B, T) -> ln P of each target (B, T), 0 where it does not count

        With a temperature they are those of the words that are drawn at it.
        """
        logits = tempered(self(inputs), temperature)
        return -ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE, reduction="none")


class TransformerLM(LanguageModel):
    """A model of text whose loss needs no stored logits: they would be the largest array by far."""

    lm_head: Linear
    """The head of a model that is not `tied`."""

    @property
    def microbatch_tokens(self) -> int:
        """Few, so that activations stay near the cores; each microbatch reads all weights, so more of a wide model."""
        return 1024 if self.config.n_embd < WIDE else 2048

    @property
    def embedding(self) -> Embedding | SoftPrompt:
        """What reads the ids; it may put rows before those of the tokens."""
        raise NotImplementedError

    @property
    def context(self) -> int:
        return super().context - self.embedding.length_before

    @property
    def head(self) -> Embedding | SoftPrompt | Linear:
        """Whose matrix turns the last hidden row into logits."""
        return self.embedding if self.config.tied else self.lm_head

    def hidden(self, ids: Array, segments: Array | Apart | None = None) -> Tensor:
        """ids (B, T) -> what the head reads (B, T, C); texts in a row are apart by their segments (B, T)"""
        raise NotImplementedError

    prefix_length = 0
    """Positions that a prefix of keys and values takes: as in front of a text, the first ones."""

    def prepared(self, batch: Batch) -> Batch:
        """Texts of a row that are apart, with their mask and positions."""
        ids, *segments = arguments(batch.inputs)
        return batch._replace(inputs=(ids, *map(self.texts_of, segments))) if segments else batch

    def texts_of(self, segments: Array | Apart | None) -> Apart | None:
        """Where the texts of each row are, if they are to be kept apart."""
        if segments is None or isinstance(segments, Apart):
            return segments
        texts = apart(segments, self.embedding.length_before)
        return texts._replace(positions=texts.positions + self.prefix_length)

    def checked(self, ids: Any) -> Array:
        """ids (B, T) that fit into the context"""
        ids, longest = as_ids(ids), self.context
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= longest:
            name = type(self).__name__
            raise ShapeError(f"{name}: ids {ids.shape} (must be (B, T) with T from 1 to {longest})")
        return ids

    def of_tokens(self, hidden: Tensor) -> Tensor:
        """hidden (B, P + T, C) -> its rows of tokens (B, T, C)"""
        before = self.embedding.length_before
        return hidden[:, before:] if before else hidden

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> logits (B, T, V)"""
        return ops.linear(self.hidden(ids), self.head.weight)

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """inputs (B, T), targets (B, T) -> mean negative log-likelihood of the targets, in nats

        Inputs may be a tuple of ids (B, T) and the segments (B, T) of texts that do not see each other.
        """
        return self.cross_entropy(self.hidden(*arguments(inputs)), targets)

    def cross_entropy(self, hidden: Tensor, targets: Array, *, reduction: str = "mean") -> Tensor:
        """hidden (B, T, C), targets (B, T) -> their negative log-likelihood, 0 where they do not count

        No logits are kept; where a few rows of the head learn, no gradient of the others is made.
        """
        options: dict[str, Any] = {"targets": targets, "ignore_index": IGNORE, "reduction": reduction}
        head = self.head.base if isinstance(self.head, SoftPrompt) else self.head
        if isinstance(head, TokenRows):
            own = head.token_rows
            return ops.linear_cross_entropy(
                hidden, head.table(), own, row_ids=head.tokens, placed=True, **options
            )
        return ops.linear_cross_entropy(hidden, head.weight, **options)

    def logprobs(self, inputs: Any, targets: Array, *, temperature: float = 1.0) -> Tensor:
        hidden = self.hidden(*arguments(inputs))
        return -self.cross_entropy(tempered(hidden, temperature), targets, reduction="none")


def arguments(inputs: Any) -> tuple[Any, ...]:
    """ids, or a tuple of ids and segments, as arguments."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def tempered(x: Tensor, temperature: float) -> Tensor:
    """Logits at a temperature, or the rows that a head without a bias makes logits of."""
    return x if temperature == 1 else x * (1 / temperature)
