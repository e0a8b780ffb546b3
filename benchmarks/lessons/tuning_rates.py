"""Which learning rate suits each method of tuning: python -m benchmarks.lessons.tuning_rates

A small GPT learns the built-in prose, then to answer (docstrings), by every method at several rates. Each row is the
loss on held-back answers and on the old text after the same number of steps; the rate is that of the pretraining times
a factor.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from chainrule.models.tuning import METHODS
from chainrule.runs import Run
from chainrule.train import TrainConfig

FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
RATE = 1e-3  # of the pretraining
SIZES = {"n_layer": 2, "n_head": 4, "n_embd": 64, "block_size": 96, "tied": False}


def pretrained(folder: Path, steps: int) -> Path:
    """The base, trained once."""
    path = folder / "base"
    if not path.exists():
        config = TrainConfig(max_steps=steps, batch_size=16, lr=RATE, eval_every=steps, save_every=steps)
        Run.new(path, "pydoc", config, "gpt", "bpe:1000", **SIZES).train()
    return path


def tuned(base: Path, folder: Path, method: str, factor: float, steps: int, seed: int) -> tuple[float, float]:
    """The losses on answers and on the old text after a tuning."""
    when = {"warmup": steps // 10, "eval_every": steps, "save_every": steps}
    config = TrainConfig(max_steps=steps, batch_size=8, lr=RATE * factor, eval_windows=128, seed=seed, **when)
    place = folder / f"{method}-{factor:g}-{seed}"
    run = Run.new(
        place, "docstrings", config, "gpt", start=base, task="instruction", method=METHODS[method]()
    )
    run.train()
    general = run.trainer.general
    assert general is not None and general.last is not None
    return run.trainer.evaluate(), general.last


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--steps", type=int, default=100, help="of each tuning")
    asked.add_argument("--pretraining", type=int, default=400, help="steps of the base")
    asked.add_argument("--seeds", type=int, default=1)
    asked.add_argument("--methods", default=",".join(METHODS))
    asked.add_argument("--factors", default=",".join(f"{factor:g}" for factor in FACTORS))
    asked.add_argument("--out", type=Path, default=None, help="where the base and the runs are kept")
    given = asked.parse_args()
    folder = given.out or Path(tempfile.mkdtemp(prefix="tuning_rates."))
    folder.mkdir(parents=True, exist_ok=True)
    base = pretrained(folder, given.pretraining)
    print("| method | rate / pretraining rate | loss on answers | on the old text |\n|---|---|---|---|")
    for method in given.methods.split(","):
        for factor in map(float, given.factors.split(",")):
            losses = [tuned(base, folder, method, factor, given.steps, seed) for seed in range(given.seeds)]
            new, old = np.mean(losses, axis=0)
            print(f"| {method} | {factor:g} | {new:.3f} | {old:.3f} |", flush=True)


if __name__ == "__main__":
    main()
