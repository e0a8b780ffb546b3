"""What the weight formats of inference cost: bits per byte of a run's validation text, or of any model and text.

chainrule train gpt pydoc --budget 420 --out runs/loss && python -m benchmarks.recipes.format_loss runs/loss
python -m benchmarks.recipes.format_loss SmolLM2-135M-Instruct.Q4_1.gguf --text book.txt --tokens 16384
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from benchmarks.harness import command_line
from chainrule import ops
from chainrule.generate import Decoder
from chainrule.generate.engine.weights import FORMATS, STORED
from chainrule.runs import Run
from chainrule.runs.load import open_model

LONGEST = 512  # tokens of a window


def nats(decoder: Decoder, windows: np.ndarray) -> float:
    """Mean loss over windows (n, T + 1), each from an empty context"""
    total = 0.0
    for window in windows:
        decoder.reset()
        logits = decoder.prefill(window[:-1], every=True)  # to the bit what reading token by token gives
        total += float(ops.cross_entropy(logits, targets=window[1:], reduction="sum"))
    return total / (windows.shape[0] * (windows.shape[1] - 1))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, help="a text to read, instead of the validation text of a run")
    parser.add_argument("--tokens", type=int, help="of the text at most")
    parser.add_argument("--weights", nargs="+", choices=(*FORMATS, STORED), default=FORMATS)
    args = parser.parse_args()
    if args.text is None:
        run = Run.resume(args.model)
        model, tokenizer, ids = run.model, run.tokenizer, np.asarray(run.task.validation)
    else:
        model, tokenizer, _ = open_model(args.model, to_decode=True)
        ids = tokenizer.encode(args.text.read_text())
    ids = ids[: args.tokens]
    T = min(model.context, LONGEST)
    count = (len(ids) - 1) // T
    windows = ids[np.arange(count)[:, None] * T + np.arange(T + 1)]  # (count, T + 1)
    per_byte = len(ids) / len(tokenizer.decode(ids).encode()) / math.log(2)
    for weights in args.weights:
        loss = nats(Decoder(model, weights), windows)
        found = {"weights": weights, "nats": round(loss, 5), "bits_per_byte": round(loss * per_byte, 5)}
        print(json.dumps(found | {"tokens": windows[:, 1:].size}), flush=True)


if __name__ == "__main__":
    main()
