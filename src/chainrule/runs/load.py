"""Runs that are there: the model, the tokenizer and the data that others take from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from chainrule.doctor.nonfinite import broken
from chainrule.errors import CheckpointError, DataError
from chainrule.io import load
from chainrule.io.hf import pretrained
from chainrule.io.hf.architectures import to_model
from chainrule.io.loading import model_files
from chainrule.models import LanguageModel, Model
from chainrule.runs import checkpoint, kinds
from chainrule.runs.checkpoint import Checkpoint
from chainrule.tasks.task import Data
from chainrule.text import Tokenizer
from chainrule.train.config import TrainConfig

D = TypeVar("D", bound=Data)


def load_model(path: str | Path) -> tuple[LanguageModel, Tokenizer]:
    """What `load_any` finds, which must be a language model."""
    model, tokenizer = load_any(path)
    if not isinstance(model, LanguageModel):
        raise CheckpointError(
            f"{path}: holds a {type(model).__name__} (must be a language model, such as a GPT)"
        )
    return model, tokenizer


def load_any(path: str | os.PathLike[str]) -> tuple[Model, Tokenizer]:
    """The model and the tokenizer of a run, of a checkpoint, or of what `io.load` reads.

    Of a run with patience it is the best checkpoint, of any other the newest.
    """
    found = load(path) if is_model_alone(Path(path)) else build(best_of(Path(path)))
    refuse_broken(path, found[0])
    return found


def refuse_broken(path: str | os.PathLike[str], model: Model) -> None:
    """A model whose weights are not all numbers can do nothing."""
    if entry := broken(model):
        raise CheckpointError(
            f"{path}: {entry.name}{list(entry.index)} is {entry.value} (weights must be finite: take an earlier "
            "checkpoint, or train again with a smaller lr)"
        )


def best_of(path: Path) -> Checkpoint:
    """What is used of a run: its best checkpoint where patience looked for it, else the newest."""
    newest = kinds.load(path, kinds.MODEL)
    step = (newest.training.get("stopping") or {}).get("best_step", newest.step)
    best = path / "checkpoints" / f"step_{step:06d}"
    return checkpoint.load(best) if step != newest.step and best.is_dir() else newest


def is_model_alone(path: Path) -> bool:
    """True for what `io.load` reads: a model without its training."""
    if model_files(path) and not (path / "checkpoints").is_dir():
        return True
    return path.is_file() or ((path / "config.json").is_file() and not (path / "manifest.json").is_file())


def build(saved: Checkpoint) -> tuple[Model, Tokenizer]:
    """The model and the tokenizer in a checkpoint."""
    try:
        model = to_model(saved.config, saved.model)
    except (TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"checkpoint: config.json does not fit this version ({error})") from error
    tokenizer = pretrained.to_tokenizer(saved.tokenizer, saved.tokenizer_config)
    if tokenizer.vocab_size != model.config.vocab_size:
        raise CheckpointError(
            f"checkpoint: tokenizer of {tokenizer.vocab_size} tokens, model of {model.config.vocab_size}"
            " (must be equal)"
        )
    return model, tokenizer


@contextmanager
def this_version(path: str | Path) -> Iterator[None]:
    """Whoever finds something missing in here, or of another form, reads the training.json of another version."""
    try:
        yield
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: training.json does not fit this version ({error})") from error


def trained_on(saved: Checkpoint, path: str | Path) -> tuple[str, str, TrainConfig]:
    """The name and the hash of the data that the run of a checkpoint learns from, and its settings."""
    with this_version(path):
        facts = saved.training["data"]
        return facts["name"], facts["sha256"], TrainConfig(**saved.training["train"])


def unchanged(folder: str | Path, find: Callable[[str], D], name: str, sha256: str) -> D:
    """A run goes on with the text it began with."""
    try:
        corpus = find(name)
    except DataError as error:
        raise DataError(f"{folder}: the text of the run is not there: {error}; put it back") from error
    if corpus.sha256 != sha256:
        raise DataError(
            f"{folder}: the corpus {corpus.name} has changed since the run began (SHA-256 {corpus.sha256[:12]}, "
            f"was {sha256[:12]}; put the old text back, or begin a new run)"
        )
    return corpus
