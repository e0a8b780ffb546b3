"""One training step of an encoder-decoder next to torch.nn.Transformer: forward, loss, backward, clipping, AdamW.

    python -m benchmarks.peers.seq2seq --config a --threads 2          prints one JSON line

Both run in turn on the same batches of unequal sentences, so that whatever else happens on the machine hits both alike;
only the ratio of medians means anything, above 1 if PyTorch takes longer. tests/peers/test_seq2seq.py shows that both
compute the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import chainrule as cr

SIZES = {  # layers, heads, width, longest sentence, batch, vocabulary
    "a": (2, 4, 128, 24, 32, 64),
    "b": (3, 8, 256, 32, 64, 8000),
    "c": (6, 8, 512, 32, 32, 16000),
}
DROPOUT, SMOOTHING = 0.1, 0.1


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


def ours(batches: cr.data.PairBatches, L: int, H: int, C: int, T: int, V: int) -> Callable[[int], float]:
    cr.seed(0)
    model = cr.models.Seq2Seq(
        cr.models.Seq2SeqConfig(
            L, H, C, block_size=T, vocab_size=V, bias=True, dropout=DROPOUT, label_smoothing=SMOOTHING
        )
    )
    parameters = model.parameters()
    optimiser = cr.optim.AdamW(parameters, 3e-4, (0.9, 0.98), weight_decay=0.1)

    def step(number: int) -> float:
        parameters.zero_grad()
        with cr.random.step(number):
            loss = model.loss(*batches.batch(number))
            loss.backward()
        cr.optim.clip_global_norm(parameters, 1.0)
        optimiser.step()
        return loss.item()

    return step


def theirs(batches: cr.data.PairBatches, *sizes: int) -> Callable[[int], float]:
    torch.manual_seed(0)
    model = TorchSeq2Seq(*sizes)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=3e-4, betas=(0.9, 0.98), weight_decay=0.1, fused=True
    )

    def step(number: int) -> float:
        (source, mask, target), targets = batches.batch(number)
        arrays = (torch.tensor(x).long() for x in (source, target, targets))
        source, target, targets = arrays
        optimiser.zero_grad(set_to_none=True)
        loss = model(source, torch.tensor(~mask), target, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return loss.item()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", choices=SIZES, default="a")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    cr.set_threads(args.threads)
    torch.set_num_threads(args.threads)
    L, H, C, T, B, V = SIZES[args.config]
    rng = np.random.default_rng(0)
    sources, targets = ([rng.integers(3, V, size=n) for n in rng.integers(T // 3, T, 2000)] for _ in range(2))
    batches = cr.data.PairBatches(sources, targets, start=1, end=2, batch_size=B, block_size=T, pool=4)
    steps = {"chainrule": ours(batches, L, H, C, T, V), "torch": theirs(batches, L, H, C, T, V)}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(args.rounds + 2):
        for name, step in steps.items():
            began = time.perf_counter()
            step(number)
            if number >= 2:  # the first ones warm up
                times[name].append((time.perf_counter() - began) * 1e3)
    medians = {name: statistics.median(ms) for name, ms in times.items()}
    ratio = medians["torch"] / medians["chainrule"]
    report = {f"{name}_ms": round(ms, 2) for name, ms in medians.items()} | {"ratio": round(ratio, 3)}
    print(json.dumps({"config": args.config, "threads": args.threads, "tokens": batches.tokens} | report))


if __name__ == "__main__":
    main()
