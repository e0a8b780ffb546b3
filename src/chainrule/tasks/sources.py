"""What a model of a family is trained on: random windows, or streams for one that carries a state along."""

from __future__ import annotations

from typing import Any, Protocol

from chainrule.data import Batches, Streams
from chainrule.data.batches.windows import Ids
from chainrule.models import LanguageModel, RecurrentLM


class BatchSource(Protocol):
    """What is learnt from: a batch for every step, a pure function of its number."""

    @property
    def tokens(self) -> int:
        """How many targets one batch holds."""

    def batch(self, step: int) -> tuple[Any, Ids]:
        """Inputs of B rows, ids (B, T) or a named tuple of arrays, and targets; a target IGNORE counts for nothing"""


def source(
    model: LanguageModel, ids: Ids, *, batch_size: int, block_size: int, seed: int
) -> Batches | Streams:
    """Batches of `ids` for this model."""
    kind = Streams if isinstance(model, RecurrentLM) else Batches
    return kind(ids, batch_size=batch_size, block_size=block_size, seed=seed)
