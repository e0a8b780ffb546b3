"""Classifiers by command, next to the baseline that each of them prints: bag of words, from scratch, on a trained body.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.classifiers [--body DIR] [--only TREC] [--seeds 3]

FOLDER holds classify/ with SST-2 (sentiment of sentences) and TREC (kinds of questions). DIR is a BERT that knows
English, such as a directory of all-MiniLM-L6-v2. SST-2 is tested on its dev set, TREC on a tenth chosen by the hash of
the text; neither is seen in training, which holds back a tenth of its own texts to choose the best step by.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.recipes.commands import chainrule
from benchmarks.recipes.results import write
from chainrule.data import Labeled, Split, read_labeled
from chainrule.runs.records.seeds import Spread

MODELS = {
    "bag of words": "train bow-classifier {train}",
    "from scratch": "train bert-classifier {train}",
    "body, frozen": "train bert-classifier {train} --init {body} --freeze body --pooling mean --precision bf16",
    "body, tuned": "train bert-classifier {train} --init {body} --pooling mean --precision bf16",
}

TASKS = ("TREC", "SST-2")
HEADER = ("task", "model", "accuracy", "by seed", "CPU time of a training")


def files(folder: Path, data: Path) -> dict[str, tuple[Path, Path]]:
    """Texts to train on and to test on, by the name of their task."""
    trec = (data / "trec" / "TREC.train.txt").read_text("latin-1").splitlines()
    rows = [Labeled(*reversed(line.split(" ", 1))) for line in trec]
    columns = {"text": "1", "label": "2"}
    sst2 = [read_labeled(data / "sst2" / f"{part}.tsv", **columns) for part in ("train", "dev")]
    return dict(
        zip(TASKS, (written(folder, "trec", *halves(rows)), written(folder, "sst2", *sst2)), strict=True)
    )


def halves(rows: list[Labeled]) -> tuple[list[Labeled], list[Labeled]]:
    """To train on, and a tenth to test on; training holds back another tenth by a hash of another seed."""
    part = Split(validation=0.0, test=0.1, seed=1).part
    tested = [part(row.text) == "test" for row in rows]
    pairs = list(zip(rows, tested, strict=True))
    return [row for row, test in pairs if not test], [row for row, test in pairs if test]


def written(folder: Path, name: str, *parts: list[Labeled]) -> tuple[Path, Path]:
    paths = (folder / f"{name}.train.tsv", folder / f"{name}.test.tsv")
    for path, rows in zip(paths, parts, strict=True):
        path.write_text(
            "text\tlabel\n" + "".join(f"{row.text}\t{row.label}\n" for row in rows), encoding="utf-8"
        )
    return paths


def tested(trains: Mapping[str, str], test: Path, seeds: int) -> list[str]:
    """Of several trainings the one that does best on the texts it holds back, in the mean over the seeds.

    Cells of a row: its name, its mean accuracy on the test texts with the standard error, that of each seed, CPU time.
    """
    with tempfile.TemporaryDirectory() as folder:
        tried = {
            name: [chainrule(f"{train} --seed {n} --out {folder}/{i}-{n}") for n in range(1, seeds + 1)]
            for i, (name, train) in enumerate(trains.items())
        }
        held_back = {name: statistics.mean(run["best_score"] for run in runs) for name, runs in tried.items()}
        best = max(held_back, key=lambda name: held_back[name])
        accuracies = [float(chainrule(f"eval {run['run']} {test}")["accuracy"]) for run in tried[best]]
    each = " ".join(f"{accuracy:.1%}" for accuracy in accuracies)
    seconds = statistics.median(run["cpu_seconds"] for run in tried[best])
    return [best, f"{Spread.of(accuracies):.1%}", each, f"{seconds:.0f} s"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--body", type=Path, help="directory of a trained BERT")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    models = {name: line for name, line in MODELS.items() if name in args.models}
    if args.body is None:
        models = {name: line for name, line in models.items() if "{body}" not in line}
    with tempfile.TemporaryDirectory() as place:
        found = files(Path(place), Path(os.environ["CHAINRULE_DATA"]) / "classify")
        for task in args.only:
            train, test = found[task]
            for name, line in models.items():
                row = [task, *tested({name: line.format(train=train, body=args.body)}, test, args.seeds)]
                print(" | ".join(row), flush=True)
                commands = [f"chainrule {command}" for command in MODELS.values()]
                write("classifiers", "Classifiers", commands, HEADER, [row], keys=2)


if __name__ == "__main__":
    main()
