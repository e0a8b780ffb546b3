"""The PyTorch side of dpo.py, as a user would write it: eager or compiled."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import serve_unavailable
from benchmarks.peers.dpo import BETA, pairs
from benchmarks.peers.step_torch import GPT, IMPORTED
from benchmarks.peers.steps import SIZES, serve_steps, worker_arguments


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


def main() -> None:
    parser = worker_arguments(__doc__)
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    L, H, C, T, _, V = SIZES[args.config]
    model = Policy(L, H, C, T, V)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-5, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    run = torch.compile(model) if args.mode == "compiled" else model
    batch = pairs(args.config)

    def step() -> float:
        ids, prompt, reference = batch()
        rows = torch.from_numpy(ids)
        inputs, targets = rows[:, :, :-1], rows[:, :, 1:]
        counts = torch.ones(targets.shape)
        counts[:, :, : prompt - 1] = 0
        optimizer.zero_grad(set_to_none=True)
        loss = run(inputs, targets, counts, torch.from_numpy(reference))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    try:
        serve_steps(step, args.config, IMPORTED)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        serve_unavailable(f"PyTorch cannot compile here: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
