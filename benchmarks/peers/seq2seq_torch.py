"""The PyTorch side of seq2seq.py: torch.nn.Transformer with the same sizes and dropout."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import chainrule as cr
from benchmarks.harness import resident_mb
from benchmarks.peers.seq2seq import DROPOUT, SIZES, SMOOTHING, pair_batches, serve_steps, worker_arguments

IMPORTED = resident_mb()


class TorchSeq2Seq(nn.Module):
    def __init__(self, L: int, H: int, C: int, T: int, V: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, C)
        self.register_buffer("positions", torch.tensor(cr.nn.sinusoidal(T, C), dtype=torch.float32))
        self.body = nn.Transformer(C, H, L, L, 4 * C, dropout=DROPOUT, batch_first=True)
        self.dropout = nn.Dropout(DROPOUT)
        self.head = nn.Linear(C, V)

    def forward(self, source: Tensor, padding: Tensor, target: Tensor, targets: Tensor) -> Tensor:
        S, T = source.shape[1], target.shape[1]
        memory = self.dropout(self.embedding(source) + self.positions[:S])
        hidden = self.dropout(self.embedding(target) + self.positions[:T])
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        options = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding, "tgt_is_causal": True}
        logits = self.head(self.body(memory, hidden, tgt_mask=future, **options))
        return F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=-1, label_smoothing=SMOOTHING
        )


def main() -> None:
    args = worker_arguments(__doc__)
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    L, H, C, T, _, V = SIZES[args.config]
    model = TorchSeq2Seq(L, H, C, T, V)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=3e-4, betas=(0.9, 0.98), weight_decay=0.1, fused=True
    )
    batches = pair_batches(args.config)

    def step(number: int) -> None:
        (source, mask, target), targets = batches.batch(number)
        source, target, targets = (torch.tensor(x).long() for x in (source, target, targets))
        optimizer.zero_grad(set_to_none=True)
        model(source, torch.tensor(~mask), target, targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    serve_steps(step, IMPORTED)


if __name__ == "__main__":
    main()
