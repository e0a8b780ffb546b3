"""Recipes: commands that train a model from data to result, run as anybody would. Each writes a table of results.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.commands [--only shakespeare ...] [--seeds 3]

FOLDER holds text/tinyshakespeare.txt, parallel/cmudict.train.dict and parallel/multi30k (see docs/guide/data.md).
Names and BERT have programs of their own: names.py and bert.py.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.recipes.results import write
from chainrule.data import load_pairs
from chainrule.runs.records.seeds import Spread

CPU = "CPU seconds of training"


@dataclass(frozen=True)
class Recipe:
    """Commands with {data} in them, how the last one's run is evaluated, and the measures that matter.

    A command after the first begins with the weights of the run {before}. `tokenizer` is the command that learns
    {tokenizer}, if there is one.
    """

    about: str
    train: tuple[str, ...]
    evaluate: str
    measures: tuple[str, ...]
    tokenizer: str = ""


RECIPES = {
    "shakespeare": Recipe(
        "nanoGPT's setting for a CPU: 4 layers, 4 heads, width 128, context 64, 12 windows, 2,000 steps",
        (
            "train gpt {data}/text/tinyshakespeare.txt --n-layer 4 --n-head 4 --n-embd 128 --block-size 64 "
            "--batch-size 12 --max-steps 2000 --eval-every 2000 --eval-windows 100000 --save-every 2000",
        ),
        "eval {run} --limit 100000",
        ("nats_per_token", "bits_per_byte"),
    ),
    "pronunciation": Recipe(
        "CMUdict, from letters to phonemes; exact: a whole word right, with its stress",
        (
            "train seq2seq {data}/parallel/cmudict.train.dict --tokenizer {tokenizer} --n-layer 3 --n-head 4 "
            "--n-embd 128 --block-size 40 --batch-size 128 --max-steps 9520 --lr 2.5e-3 --warmup 300 --dropout 0.1 "
            "--label-smoothing 0.1 --precision bf16 --eval-every 500 --save-every 500",
            # Words it has learned from are hardly better known than others: dropout has done its part.
            "train seq2seq {data}/parallel/cmudict.train.dict --init {before} --batch-size 128 --max-steps 6000 "
            "--lr 1.2e-3 --decay 0.8 --warmup 200 --dropout 0 --label-smoothing 0.1 --precision bf16 "
            "--eval-every 500 --eval-windows 2000 --save-every 500",
        ),
        "eval {run} --beam 4",
        ("exact", "bits_per_byte"),
        # Learned from phonemes alone: each becomes a token, and the letters of a word stay single.
        "tokenize train {phonemes} --vocab-size 600 --pattern ' ?[A-Z]+[0-2]?' --special-tokens <s> </s> "
        "--out {tokenizer}",
    ),
    "translation": Recipe(
        "Multi30k, German to English, byte pairs of both languages, in twenty minutes of two cores",
        (
            "train seq2seq {data}/parallel/multi30k/train.de.gz+{data}/parallel/multi30k/train.en.gz "
            "--tokenizer {tokenizer} --n-layer 3 --n-head 4 --n-embd 192 --block-size 64 --batch-size 96 "
            "--max-steps 2200 --lr 1.5e-3 --decay 0.2727 --warmup 300 --dropout 0.15 --label-smoothing 0.1 "
            "--precision bf16 --eval-every 250 --save-every 250",
            "train seq2seq {data}/parallel/multi30k/train.de.gz+{data}/parallel/multi30k/train.en.gz "
            "--init {before} --batch-size 96 --max-steps 1300 --lr 1e-3 --decay 0.9 --warmup 50 --dropout 0.15 "
            "--label-smoothing 0.1 --precision bf16 --eval-every 250 --save-every 250",
        ),
        "eval {run} {data}/parallel/multi30k/val.de.gz+{data}/parallel/multi30k/val.en.gz --beam 5",
        ("bleu", "exact", "bits_per_byte"),
        "tokenize train {data}/parallel/multi30k/train.de.gz {data}/parallel/multi30k/train.en.gz --vocab-size 4000 "
        "--special-tokens <s> </s> --out {tokenizer}",
    ),
}


def chainrule(line: str) -> dict:
    """The JSON that a command prints, and its CPU time, which other work on the machine hardly changes."""
    print(f"chainrule {line}", file=sys.stderr, flush=True)
    began = _cpu_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "chainrule.cli", *shlex.split(line), "--json"],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout) | {"cpu_seconds": _cpu_seconds() - began}


def _cpu_seconds() -> float:
    """Of all processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def phonemes(pairs: str, path: Path) -> Path:
    """The pronunciations of a dictionary, one on each line of a file."""
    path.write_text("".join(f"{spoken}\n" for _, spoken in load_pairs(pairs).pairs), encoding="utf-8")
    return path


def train_and_evaluate(recipe: Recipe, seeds: int, folder: Path) -> dict[str, list[float]]:
    """Every measure, and the CPU time of training, once per seed."""
    data = os.environ["CHAINRULE_DATA"]
    found: dict[str, list[float]] = {}
    words = {"data": data, "tokenizer": folder / f"tokenizer-{time.time_ns()}.json"}
    if "{phonemes}" in recipe.tokenizer:
        words["phonemes"] = phonemes(f"{data}/parallel/cmudict.train.dict", folder / "phonemes.txt")
    if recipe.tokenizer:
        chainrule(recipe.tokenizer.format(**words))
    for seed in range(1, seeds + 1):
        seconds = 0.0
        for number, command in enumerate(recipe.train):
            run = folder / f"run-{time.time_ns()}"
            line = command.format(**words, before=words.get("run"))
            seconds += float(chainrule(f"{line} --seed {seed + number} --out {run}")["cpu_seconds"])
            words["run"] = run
        evaluated = chainrule(recipe.evaluate.format(**words))
        for name, value in [(CPU, seconds), *((m, evaluated[m]) for m in recipe.measures)]:
            found.setdefault(name, []).append(float(value))
        print(json.dumps({"seed": seed, **{name: values[-1] for name, values in found.items()}}), flush=True)
    return found


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only:
            print(report(name, train_and_evaluate(RECIPES[name], args.seeds, Path(folder))))


def report(name: str, found: dict[str, list[float]]) -> str:
    """Write the file of a recipe: what it measured, seed by seed."""
    recipe, seeds = RECIPES[name], range(1, 1 + len(found[CPU]))
    trainings = [
        f"{line} --seed N{f' + {number}' * bool(number)}" for number, line in enumerate(recipe.train)
    ]
    commands = [f"chainrule {line}" for line in (recipe.tokenizer, *trainings, recipe.evaluate) if line]
    rows = [
        [measure, str(Spread.of(values)), *(f"{value:.4f}" for value in values)]
        for measure, values in found.items()
    ]
    header = ["", "mean ± standard error", *(f"seed {seed}" for seed in seeds)]
    return write(name, recipe.about, commands, header, rows)


if __name__ == "__main__":
    main()
