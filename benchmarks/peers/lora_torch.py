"""The PyTorch side of lora.py, as a user would write it: pairs for queries and values beside a frozen c_attn."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.lora import RANK
from benchmarks.peers.step_torch import GPT, worker


class Pairs(nn.Module):
    """c_attn(x), with B A x added to queries and values"""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        C = base.in_features
        self.base = base
        self.A = nn.ParameterList(nn.Parameter(torch.randn(RANK, C) / RANK**0.5) for _ in range(2))
        self.B = nn.ParameterList(nn.Parameter(torch.zeros(C, RANK)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.base(x).chunk(3, -1)
        dq, dv = (F.linear(F.linear(x, A), B) for A, B in zip(self.A, self.B, strict=True))
        return torch.cat([q + dq, k, v + dv], -1)


def tuned(*sizes: int) -> GPT:
    """A frozen GPT with pairs that learn."""
    model = GPT(*sizes).requires_grad_(False)
    for block in model.blocks:
        block.c_attn = Pairs(block.c_attn)
    return model


if __name__ == "__main__":
    worker(__doc__, tuned, weight_decay=0.0)
