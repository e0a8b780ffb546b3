"""What recurrent models remember, at full size: recall over a distance, order of words, copies; mean of several seeds.

python -m benchmarks.lessons.recurrence                        about ten minutes on two cores; --quick takes one
"""

from __future__ import annotations

import json

import numpy as np

from benchmarks.harness import command_line
from chainrule import random
from chainrule.lessons.sequence_tasks import Order, accuracy, classifier, copy_losses, fit, recall_table


def spread(values: list[float]) -> dict[str, float]:
    """Mean and standard error."""
    return {
        "mean": round(float(np.mean(values)), 4),
        "error": round(float(np.std(values, ddof=1) / len(values) ** 0.5), 4),
    }


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    steps, seeds = (100, 2) if quick else (1000, 3)

    for kind in ("rnn", "gru", "lstm", "attention"):
        tables = [recall_table(kinds=(kind,), steps=steps, seed=seed)[kind] for seed in range(seeds)]
        rows = {distance: spread([table[distance] for table in tables]) for distance in tables[0]}
        print(json.dumps({"task": "recall", "model": kind, "steps": steps, "accuracy": rows}), flush=True)
    for kind in ("bag", "rnn", "lstm"):
        found = []
        for seed in range(seeds):
            with random.seeded(seed):
                task = Order(seed=seed)
                model = classifier(kind, task)
                fit(model, task, 200)
                found.append(accuracy(model, task, batches=30))
        print(
            json.dumps({"task": "order", "model": kind, "steps": 200, "accuracy": spread(found)}), flush=True
        )
    runs = [copy_losses(steps=steps, seed=seed) for seed in range(seeds)]
    for name in runs[0]:
        nats = spread([float(run[name][-20:].mean()) for run in runs])
        print(json.dumps({"task": "copy of 20", "model": name, "steps": steps, "nats": nats}), flush=True)


if __name__ == "__main__":
    main()
