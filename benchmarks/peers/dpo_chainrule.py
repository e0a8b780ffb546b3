"""Our side of dpo.py: a worker that makes DPO steps of a GPT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.peers.dpo import BETA, pairs
from benchmarks.peers.step_chainrule import worker


def batches(cr: Any, config: str) -> Iterator[tuple[Any, Any]]:
    """Pairs with the reference's log-probabilities; the prompt does not count."""
    from chainrule.align.dpo import Pairs

    batch = pairs(config)
    while True:
        ids, prompt, reference = batch()
        targets = ids[:, :, 1:].astype(np.int32)
        targets[:, :, : prompt - 1] = cr.data.IGNORE
        yield Pairs(ids[:, :, :-1].astype(np.int32), reference, np.ones(len(ids), np.float32)), targets


def policy(cr: Any, gpt: Any) -> Any:
    return cr.align.DPO(gpt, cr.align.preference_loss("sigmoid", beta=BETA))


if __name__ == "__main__":
    worker(__doc__, policy, batches, lr=1e-5, weight_decay=0.0)
