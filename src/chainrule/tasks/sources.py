"""What a model of a family is trained on: random windows, or streams for one that carries a state along."""

from __future__ import annotations

from chainrule.data import Batches, Streams
from chainrule.models import LanguageModel
from chainrule.types import Ids


def source(
    model: LanguageModel, ids: Ids, *, batch_size: int, block_size: int, seed: int
) -> Batches | Streams:
    """Batches of `ids` for this model."""
    kind = Batches if model.initial_state(1) is None else Streams
    return kind(ids, batch_size=batch_size, block_size=block_size, seed=seed)
