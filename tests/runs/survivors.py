"""Small runs of every trainer in processes that may be killed, by themselves, at a moment of one's choice."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from chainrule.align.policy_gradient import PolicyGradient
from chainrule.data import load
from chainrule.io import save_pretrained
from chainrule.models import make
from chainrule.models.registry import KNOWN, REWARDS, WORD_VECTORS
from chainrule.models.tuning import LoRA, Method, Prompt
from chainrule.random import seeded
from chainrule.runs import Run, checkpoint
from chainrule.tasks.registry import NAMED, TASKS, task_of
from chainrule.text import CharTokenizer, Tokenizer, WordPieceTokenizer
from chainrule.train import TrainConfig, WordTrainConfig
from chainrule.train.log import Log, read
from chainrule.train.policy import PolicyStep
from chainrule.train.step import GradientStep
from chainrule.train.word_vectors.trainer import WordVectorStep

ALIGNED = ("gpt-reward", *NAMED)  # what begins with a model that has learned
TUNED: dict[str, Method] = {"lora": LoRA(rank=2, dropout=0.1), "prompt": Prompt(length=3)}
TRAINERS = (*(name for name in TASKS if name not in REWARDS), *ALIGNED, *TUNED)
SIZES = {
    "n_layer": 1,
    "n_head": 2,
    "n_kv_head": 1,
    "n_embd": 8,
    "n_hidden": 8,
    "block_size": 16,
    "dropout": 0.1,
}
SETTINGS: dict[str, Any] = {
    "max_steps": 9,
    "batch_size": 2,
    "warmup": 2,
    "eval_every": 3,
    "eval_windows": 4,
    "save_every": 2,
}
FILES = {
    "seq2seq": "pairs.jsonl",
    "t5": "pairs.jsonl",
    "bert-embedder": "pairs.jsonl",
    "bert-classifier": "labels.jsonl",
    "bow-classifier": "labels.jsonl",
    "bert-tagger": "tags.conll",
}
TEXT = load("pydoc").text[:12_000]


def write_data(folder: Path) -> None:
    """The data of every trainer."""
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    words = TEXT.split()
    rows = [(" ".join(words[i : i + 3]), " ".join(words[i + 3 : i + 6])) for i in range(0, 1200, 4)]
    pairs = [{"source": source, "target": target} for source, target in rows]
    labels = [{"text": text, "label": label} for pair in rows for text, label in zip(pair, "ab", strict=True)]
    tags = ("".join(f"{word}\t{len(word) % 3}\n" for word in first.split()) for first, _ in rows)
    (folder / "tags.conll").write_text("\n".join(tags), encoding="utf-8")
    judged = [
        {"prompt": words[i], "chosen": words[i + 1], "rejected": words[i] + "s"} for i in range(0, 300, 3)
    ]
    asked = [{"instruction": row["prompt"], "output": row["chosen"]} for row in judged]
    tables = {"pairs": pairs, "labels": labels, "preferences": judged, "instructions": asked}
    for name, table in tables.items():
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in table), encoding="utf-8"
        )


def new(folder: Path, trainer: str, name: str, **settings: Any) -> Run:
    """A run that has not begun."""
    if trainer in WORD_VECTORS:
        config = WordTrainConfig(epochs=6, negatives=2)
        return Run.new(folder / name, load(folder / "text.txt"), config, trainer, dim=4)
    if trainer in ALIGNED:
        return aligned(folder, trainer, name, **settings)
    if trainer in TUNED:
        return tuned(folder, trainer, name, **settings)
    known = {f.name for f in fields(KNOWN[trainer].config)}
    size: dict[str, Any] = {field: value for field, value in SIZES.items() if field in known}
    file = FILES.get(trainer, "text.txt")
    data: Any = task_of(trainer).find(folder / file)
    tokenizer: Tokenizer | None = WordPieceTokenizer.train(TEXT, 200) if trainer.startswith("bert") else None
    return Run.new(folder / name, data, TrainConfig(**SETTINGS | settings), trainer, tokenizer, **size)


def aligned(folder: Path, trainer: str, name: str, **settings: Any) -> Run:
    """A run that begins with a small GPT, the same each time."""
    tokenizer = CharTokenizer.train(TEXT)
    sizes = {
        field: value for field, value in SIZES.items() if field not in ("n_kv_head", "dropout", "block_size")
    }
    with seeded(1):
        start = make("gpt", vocab_size=tokenizer.vocab_size, block_size=48, **sizes)
    family, task = (trainer, "") if trainer in REWARDS else ("gpt", trainer)
    config = TrainConfig(**SETTINGS | settings)
    options = {"reward_function": longest, "max_new_tokens": 4, "target_kl": 0.1} if task == "ppo" else {}
    data = folder / ("instructions.jsonl" if task == "instruction" else "preferences.jsonl")
    return Run.new(folder / name, data, config, family, tokenizer, start, task=task, **options)


def tuned(folder: Path, trainer: str, name: str, **settings: Any) -> Run:
    """A run that keeps an adapter alone; its base is a model on disk."""
    base = folder / "base"
    if not base.exists():
        tokenizer = CharTokenizer.train(TEXT)
        sizes = {field: value for field, value in SIZES.items() if field not in ("n_kv_head", "dropout")}
        with seeded(1):
            start = make("gpt", vocab_size=tokenizer.vocab_size, **sizes)
        save_pretrained(start, tokenizer, base)
    config = TrainConfig(**SETTINGS | settings)
    return Run.new(folder / name, folder / "text.txt", config, start=base, method=TUNED[trainer])


def longest(prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
    """A reward: long words are good."""
    return [float(max(map(len, answer.split(" ")))) for answer in answers]


def resume(folder: Path, trainer: str) -> Run:
    functions = {"reward_function": longest} if trainer == "ppo" else {}
    return Run.resume(folder, word_vectors=trainer in WORD_VECTORS, **functions)


def _child(folder: Path, trainer: str, name: str, moments: int | None, settings: dict[str, Any]) -> None:
    """Begin a run or resume it, and die at the given moment."""
    run = (
        resume(folder / name, trainer) if (folder / name).exists() else new(folder, trainer, name, **settings)
    )
    if moments is not None:
        die_after(moments)
    run.train()


def die_after(moments: int) -> None:
    """A moment is before an update, a line of the log, a flush to the disk, or a change of a name."""
    left = iter(range(moments, -1, -1))

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **others: Any) -> Any:
            if not next(left):
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **others)

        return call

    for owner, name in (
        (GradientStep, "__call__"),
        (PolicyStep, "__call__"),
        (PolicyGradient, "update"),
        (WordVectorStep, "read"),
        (Log, "_write"),
        (os, "fsync"),
        (os, "rename"),
        (os, "replace"),
        (Path, "rename"),
        (Path, "replace"),
        (shutil, "rmtree"),
    ):
        setattr(owner, name, counted(getattr(owner, name)))


def in_a_process(
    folder: Path, trainer: str, name: str, moments: int | None = None, **settings: Any
) -> int | None:
    """Train in another process; its exit code, -9 if it was killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_child, args=(folder, trainer, name, moments, settings))
    process.start()
    process.join(60)
    return process.exitcode


def outcome(folder: Path) -> tuple[Any, ...]:
    """Everything that a run leaves behind, but for the time it took."""
    newest = checkpoint.find(folder)
    arrays = {path.name: path.read_bytes() for path in newest.glob("*.safetensors")}
    training = {k: v for k, v in checkpoint.load(newest).training.items() if k != "seconds"}
    steps = [
        record for record in read(folder / "log.jsonl") if record["step"]
    ]  # what is before tells of the machine
    log = [
        {k: v for k, v in record.items() if k != "seconds" and not k.startswith("time/")} for record in steps
    ]
    return newest.name, arrays, training, log
