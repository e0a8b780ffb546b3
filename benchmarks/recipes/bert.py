"""A BERT pre-trained on texts, then fine-tuned: next to one that was not pre-trained, and to a bag of words.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.bert --minutes 20

FOLDER holds text/*.txt to pre-train on, and classify/ with SST-2 (sentiment of sentences), TREC (kinds of questions)
and AG News (titles and descriptions: an embedder has to find the pairs). Each line is a JSON object.
SST-2 is evaluated on its dev set, TREC and AG News on a tenth chosen by the hash of the text.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr
from benchmarks.harness import command_line
from chainrule.data import (
    Encoded,
    Labeled,
    LabeledBatches,
    MaskedBatches,
    SpecialIds,
    Split,
    TwinBatches,
    label_ids,
    read_documents,
    read_labeled,
)
from chainrule.lessons.networks.sequence_classifier import BagOfWords
from chainrule.models import IGNORE, BERTClassifier, BERTEmbedder, Model, fine_tune, make
from chainrule.text import WordPieceTokenizer
from chainrule.train import TrainConfig, Trainer

TEXTS = ("fortunes", "wiki_demo", "wikitext2_valid", "tinystories_sample", "austen", "moby_dick")
BLOCK = 64


class Quiet:
    """A log that says nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class Bag(Model):
    """The bag of words, taking the batches of a BERT."""

    def __init__(self, vocab_size: int, classes: int) -> None:
        super().__init__(None)
        self.bag = BagOfWords(vocab_size, 64, classes)

    def forward(self, ids: Any, mask: Any, segments: Any) -> Any:
        return self.bag(ids, mask.sum(axis=1))

    def loss(self, inputs: Any, targets: Any) -> Any:
        return cr.ops.cross_entropy(self(*inputs), targets=targets)


def say(**record: Any) -> None:
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in record.items()}), flush=True)


def train(model: Any, batches: Any, eval_batches: list[Any], **settings: Any) -> float:
    config = TrainConfig(**{"warmup": 50, "eval_every": 10**6, "save_every": 10**6} | settings)
    return Trainer(model, batches, eval_batches, config).run(Quiet()).seconds


# -- pre-training -----------------------------------------------------------------------------------------------


def paragraphs(folder: Path) -> tuple[list[str], list[str]]:
    """(to learn from, held back)"""
    files = [folder / "text" / f"{name}.txt" for name in TEXTS]
    parts = Split(validation=0.02, test=0.0)(read_documents(files, by="paragraph"))
    return [d.text for d in parts.train], [d.text for d in parts.validation]


def pretrain(folder: Path, minutes: float, vocab_size: int) -> tuple[Any, WordPieceTokenizer]:
    training, held_back = paragraphs(folder)
    began = time.perf_counter()
    tokenizer = WordPieceTokenizer.train(training, vocab_size)
    special = SpecialIds.of(tokenizer.special_ids)
    ends = [int(tokenizer.encode(mark)[0]) for mark in ".?!"]
    options: dict[str, Any] = {"special": special, "vocab_size": tokenizer.vocab_size, "block_size": BLOCK}
    train_batches, validation_batches = (
        MaskedBatches(Encoded.of(map(tokenizer.encode, texts)), batch_size=32, ends=ends, **options)
        for texts in (training, held_back)
    )
    tokens = len(train_batches.documents.ids)
    say(stage="tokens", tokens=tokens, vocabulary=tokenizer.vocab_size, seconds=time.perf_counter() - began)
    cr.seed(0)
    model = make("bert", vocab_size=tokenizer.vocab_size, block_size=BLOCK)
    eval_batches = [validation_batches.batch(step) for step in range(16)]
    before = evaluate(model, eval_batches)
    seconds = train(model, train_batches, [eval_batches[0]], lr=1e-3, budget=60 * minutes)
    say(
        stage="pre-training",
        parameters=model.count(),
        seconds=seconds,
        before=before,
        after=evaluate(model, eval_batches),
    )
    return model, tokenizer


def evaluate(model: Any, eval_batches: list[Any]) -> dict[str, float]:
    """Nats and share of hidden words guessed, and of pairs told."""
    model.eval()
    nats, words, asked, pairs = 0.0, 0, 0, []
    with cr.no_grad():
        for inputs, targets in eval_batches:
            chosen = targets != IGNORE
            nats += model.losses(inputs, targets)[0].item() * np.count_nonzero(chosen)
            words += np.count_nonzero((model(*inputs[:3]).numpy().argmax(-1) == targets) & chosen)
            asked += np.count_nonzero(chosen)
            pairs.append((model.follows(*inputs[:3]).numpy().argmax(-1) == 0) == inputs.follows)
    found = {"nats": nats / asked, "words": words / asked, "pairs": float(np.mean(pairs))}
    return {name: round(value, 4) for name, value in found.items()}


# -- fine-tuning ------------------------------------------------------------------------------------------------


def tasks(folder: Path) -> Iterator[tuple[str, list[Labeled], list[Labeled]]]:
    """name, training, test"""
    sst = folder / "classify" / "sst2"
    columns = {"text": "1", "label": "2"}
    yield "SST-2", read_labeled(sst / "train.tsv", **columns), read_labeled(sst / "dev.tsv", **columns)
    lines = (folder / "classify" / "trec" / "TREC.train.txt").read_text("latin-1").splitlines()
    rows = [Labeled(*reversed(line.split(" ", 1))) for line in lines]
    yield "TREC", *halves(rows)


def halves(rows: list[Labeled]) -> tuple[list[Labeled], list[Labeled]]:
    part = Split(validation=0.0, test=0.1).part
    kept = [part(row.text) == "test" for row in rows]
    pairs = list(zip(rows, kept, strict=True))
    return [row for row, test in pairs if not test], [row for row, test in pairs if test]


def classify(model: Any, tokenizer: WordPieceTokenizer, folder: Path, epochs: int) -> None:
    special = SpecialIds.of(tokenizer.special_ids)
    for task, training, test in tasks(folder):
        numbers = label_ids([row.label for row in training])

        def batches(rows: list[Labeled], numbers: dict[str, int] = numbers) -> LabeledBatches:
            return LabeledBatches(
                [tokenizer.encode(row.text) for row in rows],
                [numbers[row.label] for row in rows],
                special=special,
                batch_size=32,
                block_size=BLOCK,
                pool=20,
            )

        source, eval_batches = batches(training), list(batches(test).once())
        steps = epochs * len(training) // 32
        cr.seed(1)
        scratch = fine_tune(make("bert", **sizes(model)), BERTClassifier, classes=len(numbers))
        candidates = {
            "pre-trained": (fine_tune(model, BERTClassifier, classes=len(numbers)), 5e-4),
            "not pre-trained": (scratch, 5e-4),
            "bag of words": (Bag(tokenizer.vocab_size, len(numbers)), 3e-3),
        }
        for name, (candidate, lr) in candidates.items():
            seconds = train(candidate, source, eval_batches[:1], lr=lr, max_steps=steps)
            candidate.eval()
            with cr.no_grad():
                right = [candidate(*inputs).numpy().argmax(-1) == labels for inputs, labels in eval_batches]
            accuracy = float(np.mean(np.concatenate(right)))
            say(task=task, model=name, steps=steps, seconds=seconds, test=len(test), accuracy=accuracy)


def sizes(model: Any) -> dict[str, Any]:
    names = ("n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size")
    return {name: getattr(model.config, name) for name in names}


def embed(model: Any, tokenizer: WordPieceTokenizer, folder: Path, steps: int) -> None:
    """Titles that find their description among all that were held back."""
    rows = read_labeled(folder / "classify" / "ag_news_a.csv", text="2", label="1", other="3")
    special = SpecialIds.of(tokenizer.special_ids)

    def sides(rows: list[Labeled]) -> tuple[list[Any], list[Any]]:
        return [tokenizer.encode(r.text) for r in rows], [tokenizer.encode(str(r.other)) for r in rows]

    training, test = halves(rows)
    options: dict[str, Any] = {"special": special, "block_size": BLOCK}
    source = TwinBatches(*sides(training), batch_size=64, **options)
    eval_batch = TwinBatches(*sides(test), batch_size=len(test), **options).batch(0)
    embedder = fine_tune(model, BERTEmbedder)
    say(task="AG News pairs", steps=0, among=len(test), found=found(embedder, eval_batch[0]))
    seconds = train(embedder, source, [eval_batch], lr=5e-4, max_steps=steps)
    say(
        task="AG News pairs",
        steps=steps,
        seconds=seconds,
        among=len(test),
        found=found(embedder, eval_batch[0]),
    )


def found(embedder: Any, twins: Any) -> float:
    embedder.eval()
    with cr.no_grad():
        a, b = embedder(*twins[:2]).numpy(), embedder(*twins[2:]).numpy()
    return float(np.mean((a @ b.T).argmax(axis=1) == np.arange(len(a))))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="of pre-training")
    parser.add_argument("--vocab-size", type=int, default=6000)
    parser.add_argument("--epochs", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--embedder-steps", type=int, default=300)
    args = parser.parse_args()
    folder = Path(os.environ["CHAINRULE_DATA"])
    model, tokenizer = pretrain(folder, args.minutes, args.vocab_size)
    classify(model, tokenizer, folder, args.epochs)
    embed(model, tokenizer, folder, args.embedder_steps)


if __name__ == "__main__":
    main()
