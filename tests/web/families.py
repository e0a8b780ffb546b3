"""A small run of each family that can be looked at, really trained, and an imported model."""

from __future__ import annotations

import base64
import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr
from chainrule.tasks.labeled.bag_of_words import BagOfWordsTask
from chainrule.tasks.labeled.classification import ClassificationTask
from chainrule.tasks.labeled.tagging import TaggingTask
from chainrule.tasks.pairs.embedding import EmbeddingTask
from chainrule.text.chat.roles import chat_tokenizer
from tests.web.conftest import TEXT

WIDE = {"n_head": 2, "n_embd": 16, "n_layer": 2, "block_size": 24}
NARROW = {"n_embd": 8, "n_hidden": 8}
SIZES: dict[str, dict[str, Any]] = {
    "gpt": WIDE, "llama": WIDE, "neox": WIDE, "bert": WIDE, "lstm": NARROW, "gru": NARROW, "rnn": NARROW,
    "ngram": {"block_size": 2}, "mlp": {"block_size": 3, "n_embd": 4, "n_hidden": 8},
}  # fmt: skip
WORDS = ("the", "fox", "lazy", "dog", "quick", "brown", "runs", "away")
TRANSFORMERS = ("gpt", "llama", "neox", "bert")
SENTENCE = "the quick"


def make_families(folder: Path) -> Path:
    """Runs of all families in a directory; `imported` and `talker` are directories of Hugging Face: the GPT, and one
    with a chat format."""
    folder.mkdir(parents=True)
    text = folder.parent / "fox.txt"
    text.write_text(TEXT, encoding="utf-8")
    config = cr.train.TrainConfig(max_steps=3, batch_size=2, warmup=1, save_every=1)
    for family, sizes in SIZES.items():
        cr.runs.Run.new(folder / family, str(text), config, family, **sizes).train()
    pairs = folder.parent / "pairs.tsv"
    pairs.write_text("".join(f"{a} {b}\t{b} {a}\n" for a in WORDS for b in WORDS), encoding="utf-8")
    found = cr.tasks.TranslationTask.find(str(pairs))
    cr.runs.Run.new(folder / "seq2seq", found, config, "seq2seq", **WIDE).train()
    cr.io.save_pretrained(*cr.load(folder / "gpt"), folder / "imported")
    with cr.random.seeded(0):
        tokenizer = chat_tokenizer(cr.text.CharTokenizer.train(TEXT))
        talker = cr.models.make("gpt", vocab_size=tokenizer.vocab_size, **WIDE | {"block_size": 64})
    cr.io.save_pretrained(talker, tokenizer, folder / "talker")
    return folder


def make_labelers(folder: Path) -> Path:
    """Runs and a model that predict no tokens: a classifier, a tagger, an embedder, a reward, a body alone."""
    folder.mkdir(parents=True)
    config = cr.train.TrainConfig(max_steps=3, batch_size=2, warmup=1, save_every=1)
    animal = {word: word in ("fox", "dog") for word in WORDS}
    both = [(a, b) for a in WORDS for b in WORDS]
    texts = {
        "classifier": "".join(f"{a} {b}\t{'animal' if animal[b] else 'other'}\n" for a, b in both),
        "tagger": "".join(f"{a} O\n{b} {'B-ANIMAL' if animal[b] else 'O'}\n\n" for a, b in both),
        "embedder": "".join(f"{a} {b}\t{b} {a}\n" for a, b in both),
    }
    tasks: dict[str, Any] = {
        "classifier": ClassificationTask,
        "tagger": TaggingTask,
        "embedder": EmbeddingTask,
    }
    for name, text in texts.items():
        path = folder.parent / f"{name}.{'conll' if name == 'tagger' else 'tsv'}"
        path.write_text(text, encoding="utf-8")
        cr.runs.Run.new(folder / name, tasks[name].find(str(path)), config, f"bert-{name}", **WIDE).train()
    with cr.random.seeded(0):
        tokenizer = cr.text.CharTokenizer.train(TEXT)
        reward = cr.models.make("gpt-reward", vocab_size=tokenizer.vocab_size, **WIDE)
    cr.io.save_pretrained(reward, tokenizer, folder / "reward")
    trained, words = cr.load(folder / "embedder")
    cr.io.save_pretrained(trained.bert, words, folder / "body")
    return folder


def make_flat(folder: Path) -> Path:
    """Runs of models without layers: a bag of words, and vectors of words."""
    folder.mkdir(parents=True)
    config = cr.train.TrainConfig(max_steps=20, batch_size=8, warmup=1, save_every=10, lr=0.1)
    rows = folder.parent / "bag.tsv"
    both = [(a, b) for a in WORDS for b in WORDS]
    rows.write_text("".join(f"{a} {b}\t{'animal' if b in ('fox', 'dog') else 'other'}\n" for a, b in both))
    found = BagOfWordsTask.find(str(rows))
    cr.runs.Run.new(folder / "bag", found, config, "bow-classifier", buckets=500).train()
    text = folder.parent / "words.txt"
    text.write_text(TEXT, encoding="utf-8")
    words = cr.train.WordTrainConfig(epochs=2)
    cr.runs.Run.new(folder / "words", str(text), words, "skip-gram", dim=8, window=2).train()
    return folder


def arrays(packed: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(packed["data"]), np.float32).reshape(packed["shape"])


def ran(program: str) -> tuple[dict[str, Any], str]:
    """The names of a program after it ran, and what it printed."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, names)
    return names, printed.getvalue()
