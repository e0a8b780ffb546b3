"""A BERT pre-trained on all prose at hand, then fine-tuned: next to the same model that was not, by commands.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.bert --minutes 50 [--seeds 3] [--work DIR]

FOLDER holds text/, instruct/, summarise/, parallel/ and classify/ (see docs/guide/data.md). Word vectors of the prose
are learned first, and the embeddings begin with them. SST-2 is tested on its dev set, TREC on a tenth chosen by the
hash of the text: neither is read before, and both models choose their best step on a tenth of the training texts. With
--work everything that is made stays in DIR, and what is there already is not made again.
"""

from __future__ import annotations

import datetime
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.recipes.classifiers import files, tested
from benchmarks.recipes.commands import RESULTS, chainrule
from benchmarks.recipes.prose import prose
from benchmarks.report import cpu_name, markdown
from chainrule.data import read_labeled
from chainrule.runs.records.seeds import Spread

SIZES = "--n-layer 2 --n-head 4 --n-embd 128 --n-hidden 512 --block-size 64 --norm pre"
MAKE = {  # a file or directory of the work, and the command that makes it
    "tokens.json": "tokenize train {work}/prose.txt --kind wordpiece --vocab-size 12000 --out {out}",
    "shards": "data build {work}/prose.txt --by paragraph --tokenizer {work}/tokens.json --end= --validation 0.005 "
    "--out {out}",
    "words": "train word2vec {work}/prose.txt --dim 128 --epochs 5 --sample 1e-4 --out {out}",
    "bert": "train bert {work}/shards --init-embeddings {work}/words {sizes} --dropout 0 --batch-size 32 --lr 2e-3 "
    "--warmup 500 --weight-decay 0.01 --beta2 0.98 --precision bf16 {length} --eval-every 2000 --save-every 2000 "
    "--out {out}",
}
MODELS = {
    "pre-trained": "train bert-classifier {train} --init {work}/bert",
    "from scratch": "train bert-classifier {train} --tokenizer {work}/tokens.json {sizes}",
}
PASSES, BATCH, EVALUATIONS = 4, 32, 8  # of fine-tuning
HELD_BACK = 0.1  # of the training texts


def fine_tuning(texts: int) -> str:
    """The settings that both models have: those of a classifier from scratch, with its bag of words."""
    steps = PASSES * round((1 - HELD_BACK) * texts) // BATCH
    return (
        f"--pooling mean --dropout 0.2 --buckets 65536 --l2 {1 / (20 * texts):.2g} --lr 5e-4 --warmup {steps // 10} "
        f"--batch-size {BATCH} --max-steps {steps} --eval-every {steps // EVALUATIONS} --precision bf16"
    )


def pretrain(work: Path, length: str, training: list[Path]) -> None:
    """Make what is not there yet, from the prose to the BERT."""
    more = (row.text for path in training for row in read_labeled(path, text="text", label="label"))
    if not (text := work / "prose.txt").exists():
        text.write_text(prose(Path(os.environ["CHAINRULE_DATA"]), more), encoding="utf-8")
    for name, command in MAKE.items():
        if not (work / name).exists():
            made = chainrule(command.format(work=work, out=work / name, sizes=SIZES, length=length))
            print(name, made, flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--minutes", type=float, default=50.0, help="of pre-training")
    parser.add_argument("--steps", type=int, help="of pre-training, instead of minutes")
    parser.add_argument("--seeds", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--work", type=Path, help="directory of everything that is made")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = args.work or Path(place)
        work.mkdir(exist_ok=True)
        found = files(work, Path(os.environ["CHAINRULE_DATA"]) / "classify")
        length = f"--max-steps {args.steps}" if args.steps else f"--budget {60 * args.minutes}"
        pretrain(work, length, [train for train, _ in found.values()])
        rows = []
        for task, (train, test) in found.items():
            settings = fine_tuning(len(read_labeled(train, text="text", label="label")))
            for name, command in MODELS.items():
                line = f"{command.format(train=train, work=work, sizes=SIZES)} {settings}"
                results = [tested(line, test, Path(place), seed) for seed in range(1, args.seeds + 1)]
                accuracies = [accuracy for accuracy, _ in results]
                seconds = statistics.median(seconds for _, seconds in results)
                mean = f"{Spread.of(accuracies):.1%}"
                rows.append([task, name, mean, " ".join(f"{a:.1%}" for a in accuracies), f"{seconds:.0f} s"])
                print(" | ".join(rows[-1]), flush=True)
    today = f"Written on {datetime.date.today()}, {cpu_name()}; a new run replaces this file."
    commands = "\n".join(f"    chainrule {command}" for command in (*MAKE.values(), *MODELS.values()))
    table = markdown(["", "", "accuracy", "by seed", "training"], rows)
    text = "\n\n".join(["# BERT: pre-trained, then fine-tuned", today, commands, table]) + "\n"
    (RESULTS / "recipe-bert.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
