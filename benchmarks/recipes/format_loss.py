"""What the weight formats of inference cost: bits per byte of a trained run's validation text, read token by token.

chainrule train gpt pydoc --budget 420 --out runs/loss && python -m benchmarks.recipes.format_loss runs/loss
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from benchmarks.harness import command_line
from chainrule import ops
from chainrule.generate import Decoder
from chainrule.generate.engine.weights import FORMATS
from chainrule.runs import Run

BATCH = 64  # windows read side by side


def nats(decoder: Decoder, windows: np.ndarray) -> float:
    """Mean loss over windows (n, T + 1), each from an empty context"""
    total = 0.0
    for start in range(0, len(windows), BATCH):
        part = windows[start : start + BATCH]
        slots = range(len(part))
        decoder.reset()
        for t in range(part.shape[1] - 1):
            logits = decoder.step(part[:, t], slots)
            total += float(ops.cross_entropy(logits, targets=part[:, t + 1], reduction="sum"))
    return total / (windows.shape[0] * (windows.shape[1] - 1))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("run", type=Path)
    run = Run.resume(parser.parse_args().run)
    T, ids = run.model.config.block_size, np.asarray(run.task.validation)
    count = (len(ids) - 1) // T
    windows = ids[np.arange(count)[:, None] * T + np.arange(T + 1)]  # (count, T + 1)
    text = run.tokenizer.decode(ids)
    per_byte = len(text) / len(text.encode()) / math.log(2)
    for weights in FORMATS:
        bits = nats(Decoder(run.model, weights, BATCH), windows) * per_byte
        print(json.dumps({"weights": weights, "bits_per_byte": round(bits, 5)}), flush=True)


if __name__ == "__main__":
    main()
