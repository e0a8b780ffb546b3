"""What a model of a family is trained on: random windows, or streams for one that carries a state along."""

from __future__ import annotations

from chainrule.data import Batches, Streams
from chainrule.models import LanguageModel, RecurrentLM
from chainrule.train.loop import Ids


def source(
    model: LanguageModel, ids: Ids, *, batch_size: int, block_size: int, seed: int
) -> Batches | Streams:
    """Batches of `ids` for this model."""
    kind = Streams if isinstance(model, RecurrentLM) else Batches
    return kind(ids, batch_size=batch_size, block_size=block_size, seed=seed)
