"""The PyTorch side of lora.py, as a user would write it: pairs for queries and values beside a frozen c_attn."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import resident_mb, serve_unavailable
from benchmarks.peers.lora import RANK
from benchmarks.peers.step_torch import GPT
from benchmarks.peers.steps import SIZES, serve_steps, windows, worker_arguments

IMPORTED = resident_mb()


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


def main() -> None:
    parser = worker_arguments(__doc__)
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    L, H, C, T, _, V = SIZES[args.config]
    model = GPT(L, H, C, T, V).requires_grad_(False)
    for block in model.blocks:
        block.c_attn = Pairs(block.c_attn)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    run = torch.compile(model) if args.mode == "compiled" else model
    batch = windows(args.config)

    def step() -> float:
        ids = torch.from_numpy(batch())
        optimizer.zero_grad(set_to_none=True)
        loss = run(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        return loss.item()

    try:
        serve_steps(step, args.config, IMPORTED)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        serve_unavailable(f"PyTorch cannot compile here: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
