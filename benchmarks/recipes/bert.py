"""A BERT pre-trained on all prose at hand, then fine-tuned: next to the same model that was not, by commands.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.bert [--steps 30000] [--seeds 3] [--only TREC] [--work DIR]

FOLDER holds text/, instruct/, summarise/, parallel/ and classify/ (see docs/guide/data.md). Word vectors of the prose
are learned first, and the embeddings begin with them; 30,000 batches then take about 50 minutes of one core. SST-2 is
tested on its dev set, TREC on a tenth chosen by the hash of the text: neither is read before. Both models choose their
rate (of two) and their best step on a tenth of the training texts. With --work everything that is made stays in DIR,
and what is there already is not made again.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.recipes.classifiers import TASKS, files, tested
from benchmarks.recipes.commands import chainrule
from benchmarks.recipes.prose import prose
from benchmarks.recipes.results import write
from chainrule.data import read_labeled

SIZES = "--n-layer 2 --n-head 4 --n-embd 192 --n-hidden 768 --block-size 64 --norm pre"
MAKE = {  # a file or directory of the work, and the command that makes it
    "tokens.json": "tokenize train {work}/prose.txt --kind wordpiece --vocab-size 12000 --out {out}",
    "shards": "data build {work}/prose.txt --by paragraph --tokenizer {work}/tokens.json --end= --validation 0.005 "
    "--out {out}",
    "words": "train word2vec {work}/prose.txt --dim 192 --epochs 5 --sample 1e-4 --out {out}",
    "bert": "train bert {work}/shards --init-embeddings {work}/words {sizes} --dropout 0 --batch-size 32 --lr 1.5e-3 "
    "--warmup 500 --weight-decay 0.01 --beta2 0.98 --precision bf16 --max-steps {steps} --eval-every 2000 "
    "--save-every 2000 --out {out}",
}
MODELS = {
    "pre-trained": "train bert-classifier {train} --init {work}/bert",
    "from scratch": "train bert-classifier {train} --tokenizer {work}/tokens.json {sizes}",
}
HEADS = {"with a bag of words": "--buckets 65536 --l2 {l2:.2g}", "without": "--buckets 0"}
RATES = ("5e-4", "2e-4")
HEADER = ("task", "head", "model", "rate", "accuracy", "by seed", "CPU time of a fine-tuning")
PASSES, BATCH, EVALUATIONS = 4, 32, 8  # of fine-tuning
HELD_BACK = 0.1  # of the training texts


def fine_tuning(texts: int, head: str, rate: str) -> str:
    """The settings that both models have."""
    steps = PASSES * round((1 - HELD_BACK) * texts) // BATCH
    return (
        f"--pooling mean --dropout 0.2 {head.format(l2=1 / (20 * texts))} --lr {rate} --warmup {steps // 10} "
        f"--batch-size {BATCH} --max-steps {steps} --eval-every {steps // EVALUATIONS} --precision bf16"
    )


def pretrain(work: Path, steps: int, training: list[Path]) -> None:
    """Make what is not there yet, from the prose to the BERT."""
    more = (row.text for path in training for row in read_labeled(path, text="text", label="label"))
    if not (text := work / "prose.txt").exists():
        text.write_text(prose(Path(os.environ["CHAINRULE_DATA"]), more), encoding="utf-8")
    for name, command in MAKE.items():
        if not (work / name).exists():
            made = chainrule(command.format(work=work, out=work / name, sizes=SIZES, steps=steps))
            print(name, made, flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=30_000, help="of pre-training")
    parser.add_argument("--seeds", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=list(HEADS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--work", type=Path, help="directory of everything that is made")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = args.work or Path(place)
        work.mkdir(exist_ok=True)
        found = files(work, Path(os.environ["CHAINRULE_DATA"]) / "classify")
        pretrain(work, args.steps, [train for train, _ in found.values()])
        for task, head, model in itertools.product(args.only, args.heads, args.models):
            train, test = found[task]
            texts = len(read_labeled(train, text="text", label="label"))
            line = MODELS[model].format(train=train, work=work, sizes=SIZES)
            trains = {rate: f"{line} {fine_tuning(texts, HEADS[head], rate)}" for rate in RATES}
            row = [task, head, model, *tested(trains, test, args.seeds)]
            print(" | ".join(row), flush=True)
            commands = [f"chainrule {command}" for command in (*MAKE.values(), *MODELS.values())]
            write("bert", "BERT: pre-trained, then fine-tuned", commands, HEADER, [row], keys=3)


if __name__ == "__main__":
    main()
