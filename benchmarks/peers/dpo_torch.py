"""The PyTorch side of dpo.py, as a user would write it: eager or compiled."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers.dpo import BETA, pairs
from benchmarks.peers.step_torch import GPT, worker


class Policy(GPT):
    def logprobs(self, ids: Tensor, targets: Tensor, counts: Tensor) -> Tensor:
        """ids (B, T), targets (B, T), counts (B, T) -> ln P of the targets that count (B,)"""
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return -(losses.view_as(targets) * counts).sum(-1)

    def forward(self, ids: Tensor, targets: Tensor, counts: Tensor, reference: Tensor) -> Tensor:
        """The DPO loss of pairs (B, 2, T)"""
        flat = (x.flatten(0, 1) for x in (ids, targets, counts))
        rewards = self.logprobs(*flat).view(-1, 2) - reference
        return -F.logsigmoid(BETA * (rewards[:, 0] - rewards[:, 1])).mean()


def batches(config: str) -> Iterator[tuple[Tensor, ...]]:
    """Pairs with the reference's log-probabilities; the prompt does not count."""
    batch = pairs(config)
    while True:
        ids, prompt, reference = batch()
        rows = torch.from_numpy(ids)
        inputs, targets = rows[:, :, :-1], rows[:, :, 1:]
        counts = torch.ones(targets.shape)
        counts[:, :, : prompt - 1] = 0
        yield inputs, targets, counts, torch.from_numpy(reference)


if __name__ == "__main__":
    worker(__doc__, Policy, batches, lr=1e-5, weight_decay=0.0)
