"""What repeating a text is worth: a small GPT on a text read up to eight times, beside one that always reads new text.

    python -m benchmarks.lessons.repetition benchmarks/results/repetition.csv      about two CPU minutes

Both are the same model with the same settings; both are evaluated on the same held-out text after as many tokens as the
short text has, again and again. Sources of Python's standard library, three seeds.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chainrule as cr
from benchmarks.harness import command_line, progress
from chainrule.data import Batches, load, split, windows
from chainrule.models import GPT, GPTConfig
from chainrule.train import Trainer
from chainrule.train.config import TrainConfig
from chainrule.train.log import Logger

CHARACTERS, EPOCHS, SEEDS = 100_000, 8, 3
SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 48, "block_size": 64}
BATCH, LR = 16, 3e-3
COLUMNS = ("seed", "text", "epoch", "tokens", "nats")


@dataclass
class Losses(Logger):
    """Every evaluation, in nats per character."""

    found: list[float] = field(default_factory=list)

    def evaluation(self, step: int, loss: float, **_: Any) -> None:
        if step:
            self.found.append(loss)


def losses(text: str, held_out: str, tokenizer: cr.text.Tokenizer, seed: int) -> list[float]:
    """The loss on the held-out text after each epoch of CHARACTERS tokens"""
    with cr.random.seeded(seed):
        model = GPT(GPTConfig(**SIZES, vocab_size=tokenizer.vocab_size))
    block = SIZES["block_size"]
    batches = Batches(tokenizer.encode(text), batch_size=BATCH, block_size=block, seed=seed)
    held = list(windows(tokenizer.encode(held_out), batch_size=64, block_size=block, limit=512))
    epoch = math.ceil(CHARACTERS / batches.tokens)
    config = TrainConfig(
        max_steps=EPOCHS * epoch, eval_every=epoch, lr=LR, schedule="constant", warmup=epoch // 4, seed=seed
    )
    log = Losses()
    Trainer(model, batches, held, config).run(log)
    return log.found[:EPOCHS]


def main() -> None:
    asked = command_line(__doc__)
    asked.add_argument("table", type=Path)
    given = asked.parse_args()
    training, held_out = split(load("stdlib").text)
    texts = {"repeated": training[:CHARACTERS], "new": training[: EPOCHS * CHARACTERS]}
    tokenizer = cr.text.CharTokenizer.train(training[: EPOCHS * CHARACTERS] + held_out)
    rows: list[tuple[Any, ...]] = []
    for seed in range(SEEDS):
        for name, text in texts.items():
            found = losses(text, held_out, tokenizer, seed)
            rows += [
                (seed, name, epoch, epoch * CHARACTERS, round(loss, 5)) for epoch, loss in enumerate(found, 1)
            ]
            progress(f"seed {seed}, {name}: {' '.join(f'{loss:.3f}' for loss in found)}")
            with given.table.open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file, lineterminator="\n")
                table.writerow(COLUMNS)
                table.writerows(rows)


if __name__ == "__main__":
    main()
