"""Classifiers by command, next to the baseline that each of them prints: bag of words, from scratch, on a trained body.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.classifiers [--body DIR] [--only TREC] [--seeds 3]

FOLDER holds classify/ with SST-2 (sentiment of sentences) and TREC (kinds of questions). DIR is a BERT that knows
English, such as a directory of all-MiniLM-L6-v2. SST-2 is tested on its dev set, TREC on a tenth chosen by the hash of
the text; neither is seen in training, which holds back a tenth of its own texts to choose the best step by.
"""

from __future__ import annotations

import datetime
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.recipes.commands import RESULTS, chainrule
from benchmarks.report import cpu_name, markdown
from chainrule.data import Labeled, Split, read_labeled
from chainrule.runs.records.seeds import Spread

MODELS = {
    "bag of words": "train bow-classifier {train}",
    "from scratch": "train bert-classifier {train}",
    "body, frozen": "train bert-classifier {train} --init {body} --freeze body --pooling mean --precision bf16",
    "body, tuned": "train bert-classifier {train} --init {body} --pooling mean --precision bf16",
}


def files(folder: Path, data: Path) -> dict[str, tuple[Path, Path]]:
    """Texts to train on and to test on, by the name of their task."""
    trec = (data / "trec" / "TREC.train.txt").read_text("latin-1").splitlines()
    rows = [Labeled(*reversed(line.split(" ", 1))) for line in trec]
    columns = {"text": "1", "label": "2"}
    sst2 = [read_labeled(data / "sst2" / f"{part}.tsv", **columns) for part in ("train", "dev")]
    return {"TREC": written(folder, "trec", *halves(rows)), "SST-2": written(folder, "sst2", *sst2)}


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


def tested(train: str, test: Path, folder: Path, seed: int) -> tuple[float, float]:
    """Accuracy on the test texts, and seconds of training."""
    run = folder / f"run-{len(list(folder.iterdir()))}"
    trained = chainrule(f"{train} --seed {seed} --out {run}")
    return float(chainrule(f"eval {run} {test}")["accuracy"]), float(trained["seconds"])


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--body", type=Path, help="directory of a trained BERT")
    parser.add_argument("--only", nargs="+", choices=("TREC", "SST-2"), default=["TREC", "SST-2"])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        found = files(Path(place), Path(os.environ["CHAINRULE_DATA"]) / "classify")
        for task in args.only:
            train, test = found[task]
            for name in args.models:
                if "{body}" in MODELS[name] and args.body is None:
                    continue
                command = MODELS[name].format(train=train, body=args.body)
                results = [tested(command, test, Path(place), seed) for seed in range(1, args.seeds + 1)]
                accuracies = [accuracy for accuracy, _ in results]
                seconds = statistics.median(seconds for _, seconds in results)
                mean = f"{Spread.of(accuracies):.1%}"
                rows.append([task, name, mean, " ".join(f"{a:.1%}" for a in accuracies), f"{seconds:.0f} s"])
                print(" | ".join(rows[-1]), flush=True)
    today = f"Written on {datetime.date.today()}, {cpu_name()}; a new run replaces this file."
    table = markdown(["", "", "accuracy", "by seed", "training"], rows)
    commands = "\n".join(f"    chainrule {command}" for command in MODELS.values())
    text = "\n\n".join(["# Classifiers", today, commands, table]) + "\n"
    (RESULTS / "recipe-classifiers.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
