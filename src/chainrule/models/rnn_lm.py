"""Recurrent language models: everything read so far is one vector, carried from token to token.

    hidden_t, state_t = cell(embedding[ids_t], state_t-1)       n_layer cells, one above the other
    logits_t = head hidden_t

The same weights serve any length. Training goes back at most `block_size` steps through time (truncated
back-propagation); the state itself is carried on, so what it holds may come from further back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.calls import Fields
from chainrule.errors import ShapeError
from chainrule.models.language_model import LanguageModel
from chainrule.models.microbatch import Batch, State
from chainrule.nn import GRU, LSTM, RNN, Embedding, Linear, Stack
from chainrule.nn.init import normal
from chainrule.nn.recurrent import Recurrent
from chainrule.types import IGNORE, as_ids
from chainrule.validate import Check


@dataclass(frozen=True)
class RecurrentConfig(Fields):
    """The size of a recurrent language model."""

    n_layer: int = 2
    """Recurrent layers, one above the other."""
    n_embd: int = 128
    """Width of the vectors of the tokens."""
    n_hidden: int = 256
    """Width of the state of each layer."""
    block_size: int = 128
    """Steps that gradients go back through time; the state is carried beyond them."""
    vocab_size: int = 256
    """Vocabulary size."""
    dropout: float = 0.0
    """Fraction of the values passed from layer to layer, and to the head, set to 0 in training."""

    def __post_init__(self) -> None:
        check = Check("recurrent model", self)
        check.at_least(1, "n_layer", "n_embd", "n_hidden", "block_size", "vocab_size")
        check.fraction("dropout")


class RecurrentLM(LanguageModel):
    """Base of the three: a subclass names its `cell`."""

    cell: ClassVar[type[Recurrent]]
    any_length = True

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        widths = [config.n_embd] + [config.n_hidden] * config.n_layer
        self.embedding = Embedding(config.vocab_size, config.n_embd)
        self.cells = Stack([self.cell(*pair) for pair in pairwise(widths)], dropout=config.dropout)
        # Small, so that the first logits are near 0 and the first loss near ln V.
        self.head = Linear(config.n_hidden, config.vocab_size, bias=False, init=partial(normal, std=0.02))

    def initial_state(self, B: int) -> State:
        """The state of B texts before their first token, zeros."""
        return self.cells.start(B)

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> logits (B, T, V), each text from its beginning"""
        return self.head(self.hidden(ids)[0])

    def hidden(self, ids: Array, state: Any = None) -> tuple[Tensor, Any]:
        """ids (B, T) -> what the head reads (B, T, H), and the state after the last token, to continue from"""
        ids = as_ids(ids)
        if ids.ndim != 2 or ids.shape[1] == 0:
            raise ShapeError(f"{type(self).__name__}: ids {ids.shape} (must be (B, T) with T at least 1)")
        hidden, state = self.cells(self.embedding(ids), state)
        return self.cells.dropout(hidden), state

    def loss(self, inputs: Array, targets: Array) -> Tensor:
        """inputs (B, T), targets (B, T) -> mean negative log-likelihood of the targets, in nats"""
        return self.loss_from(None, inputs, targets)[0]

    def losses_and_state(self, batch: Batch) -> tuple[tuple[Tensor, ...], State | None]:
        """Texts continue from the state of their batch; without one they begin, and no state is kept."""
        if batch.state is None:
            return super().losses_and_state(batch)
        loss, state = self.loss_from(batch.state, batch.inputs, batch.targets)
        return (loss,), state

    def loss_from(self, state: State | None, ids: Array, targets: Array) -> tuple[Tensor, State]:
        """The loss of texts that continue from `state`, and their state afterwards.

        States are plain arrays: no gradient flows into tokens before these (truncated backpropagation through time).
        """
        hidden, after = self.hidden(ids, state)
        loss = ops.linear_cross_entropy(hidden, self.head.weight, targets=targets, ignore_index=IGNORE)
        return loss, tuple(tuple(part.array for part in layer) for layer in after)


class RNNLM(RecurrentLM):
    """h' = tanh(W_x x + W_h h + b): the plain recurrent network, with a short memory.

    >>> import chainrule as cr, numpy as np
    >>> model = cr.models.RNNLM(cr.models.RecurrentConfig(n_layer=1, n_embd=8, n_hidden=16, vocab_size=10))
    >>> hidden, state = model.hidden(np.array([[1, 2, 3]]))
    >>> hidden.shape, [part.shape for part in state[0]]
    ((1, 3, 16), [(1, 16)])
    """

    cell = RNN


class GRULM(RecurrentLM):
    """Gates decide what of the state is kept: two of them, and no second vector beside it."""

    cell = GRU


class LSTMLM(RecurrentLM):
    """A cell beside the state, added to rather than multiplied: gradients pass it almost unchanged."""

    cell = LSTM
