"""A BERT pre-trained on all prose at hand, then fine-tuned: next to the same model that was not, by commands.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.bert [--steps 5000] [--seeds 3] [--work DIR]

FOLDER holds text/, instruct/, summarise/, parallel/ and classify/ (see docs/guide/data.md). Word vectors of the prose
are learned first, and the embeddings begin with them; last the model guesses words of the texts of both tasks alone.
SST-2 is tested on its dev set, TREC on a tenth chosen by the hash of the text: neither is read before, and both models
choose their best step on a tenth of the training texts. With --work everything that is made stays in DIR, and what is
there already is not made again.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.recipes.classifiers import files, tested
from benchmarks.recipes.commands import chainrule
from benchmarks.recipes.prose import paragraphs, prose
from benchmarks.recipes.results import write
from chainrule.data import read_labeled

SIZES = "--n-layer 2 --n-head 4 --n-embd 128 --n-hidden 512 --block-size 64 --norm pre"
STEPS, ADAPT = 3000, 600  # of pre-training on all prose, and on the texts of the tasks
RATES = {"pre-trained": "5e-4", "from scratch": "5e-4"}
BUILD = "data build {work}/%s.txt --by paragraph --tokenizer {work}/tokens.json --end= --validation %s --out {out}"
ADAM = "--weight-decay 0.01 --beta2 0.98 --precision bf16 --batch-size 32"
MAKE = {  # a file or directory of the work, and the command that makes it
    "tokens.json": "tokenize train {work}/prose.txt --kind wordpiece --vocab-size 12000 --out {out}",
    "prose": BUILD % ("prose", 0.005),
    "tasks": BUILD % ("tasks", 0.05),
    "words": "train word2vec {work}/prose.txt --dim 128 --epochs 5 --sample 1e-4 --out {out}",
    "general": f"train bert {{work}}/prose --init-embeddings {{work}}/words {SIZES} {ADAM} --dropout 0 --lr 2e-3 "
    "--warmup 300 --max-steps {steps} --eval-every 1000 --save-every 500 --out {out}",
    "bert": f"train bert {{work}}/tasks --init {{work}}/general {ADAM} --dropout 0.1 --lr 5e-4 --warmup 100 "
    f"--max-steps {ADAPT} --eval-every 200 --save-every 200 --out {{out}}",
}
MODELS = {
    "pre-trained": "train bert-classifier {train} --init {work}/bert",
    "from scratch": f"train bert-classifier {{train}} --tokenizer {{work}}/tokens.json {SIZES}",
}
HEADER = ("task", "head", "model", "accuracy", "by seed", "CPU time of a fine-tuning")
HEADS = {"without a bag of words": "--buckets 0", "with a bag of words": "--buckets 65536 --l2 {l2:.2g}"}
PASSES, BATCH, EVALUATIONS = 4, 32, 8  # of fine-tuning
HELD_BACK = 0.1  # of the training texts


def fine_tuning(texts: int, head: str, rate: str) -> str:
    """The settings that both models have, but for the rate: each has the one that was best on held-back texts."""
    steps = PASSES * round((1 - HELD_BACK) * texts) // BATCH
    return (
        f"--pooling mean --dropout 0.2 {head.format(l2=1 / (20 * texts))} --lr {rate} --warmup {steps // 10} "
        f"--batch-size {BATCH} --max-steps {steps} --eval-every {steps // EVALUATIONS} --precision bf16"
    )


def pretrain(work: Path, steps: int, training: list[Path]) -> None:
    """Make what is not there yet, from the prose to the BERT."""
    own = [row.text for path in training for row in read_labeled(path, text="text", label="label")]
    if not (work / "prose.txt").exists():
        (work / "prose.txt").write_text(prose(Path(os.environ["CHAINRULE_DATA"]), own), encoding="utf-8")
        (work / "tasks.txt").write_text(paragraphs(own), encoding="utf-8")
    for name, command in MAKE.items():
        if not (work / name).exists():
            print(name, chainrule(command.format(work=work, out=work / name, steps=steps)), flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help="of pre-training on all prose")
    parser.add_argument("--seeds", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--only", nargs="+", choices=HEADS, default=list(HEADS), help="heads")
    parser.add_argument("--work", type=Path, help="directory of everything that is made")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = args.work or Path(place)
        work.mkdir(exist_ok=True)
        found = files(work, Path(os.environ["CHAINRULE_DATA"]) / "classify")
        pretrain(work, args.steps, [train for train, _ in found.values()])
        for task, head, model in itertools.product(found, args.only, MODELS):
            train, test = found[task]
            texts = len(read_labeled(train, text="text", label="label"))
            line = f"{MODELS[model].format(train=train, work=work)} {fine_tuning(texts, HEADS[head], RATES[model])}"
            row = [task, head, model, *tested(line, test, args.seeds)]
            print(" | ".join(row), flush=True)
            commands = [f"chainrule {command}" for command in (*MAKE.values(), *MODELS.values())]
            write("bert", "BERT: pre-trained, then fine-tuned", commands, HEADER, [row], keys=3)


if __name__ == "__main__":
    main()
