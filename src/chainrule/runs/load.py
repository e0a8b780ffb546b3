"""Trained models: what a path holds, and the model, tokenizer, settings and data behind it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy.typing as npt

from chainrule import io
from chainrule.autograd.stored import StoredParam
from chainrule.columns import CHOSEN, Columns
from chainrule.errors import (
    ChainruleError,
    ChainruleWarning,
    CheckpointError,
    DataError,
    FormatError,
    kind_of,
)
from chainrule.io import loading
from chainrule.io.hf import pretrained
from chainrule.io.hf.architectures import family_name, to_opened
from chainrule.io.opened import is_stored
from chainrule.models import LanguageModel, Model
from chainrule.models.registry import KNOWN, WORD_VECTORS
from chainrule.runs import checkpoint
from chainrule.runs.checkpoint import Checkpoint
from chainrule.runs.folder import RunFolder
from chainrule.runs.tuned import adapter
from chainrule.runs.tuned.adapter import is_adapter, load_adapter
from chainrule.text import Tokenizer

if TYPE_CHECKING:
    from chainrule.tasks.named import Data
    from chainrule.tasks.task import Task

D = TypeVar("D", bound="Data")
# What only training needs is imported where it is used: a server starts without it.


class Loaded(NamedTuple):
    """A trained model."""

    model: Model
    tokenizer: Tokenizer
    checkpoint: Checkpoint | None
    """None for a model of another program, which comes without its training."""


class Origin(NamedTuple):
    """The data of a run: their name, their hash, and the columns of a table."""

    name: str = ""
    sha256: str = ""
    columns: Columns = CHOSEN


def load(path: str | os.PathLike[str]) -> tuple[Model, Tokenizer]:
    """The model and the tokenizer of a run, of a checkpoint, or of what `io.load` reads.

    Of a run it is the checkpoint with the best evaluation, unless it was told to keep the last.
    """
    return open_model(path)[:2]


def task_of_run(loaded: Loaded) -> type[Task]:
    """What a model is used for: the task of its run, or that of its family."""
    from chainrule.tasks.registry import task_of_model

    return task_of_model(
        loaded.model, loaded.checkpoint.training.get("task", "") if loaded.checkpoint else ""
    )


def first_model(path: str | os.PathLike[str]) -> Model:
    """The model that a run began with, by the path of the run or of one of its checkpoints."""
    folder = RunFolder(Path(path))
    run = RunFolder(folder.path.parent.parent) if folder.is_checkpoint else folder
    return build(checkpoint.load(run.checkpoint(0)), run.path)[0]


def load_language_model(
    path: str | os.PathLike[str], *, to_decode: bool = False
) -> tuple[LanguageModel, Tokenizer]:
    """What `load` finds, which must be a language model; `to_decode` as in `open_model`."""
    model, tokenizer, _ = open_model(path, to_decode=to_decode)
    if not isinstance(model, LanguageModel):
        rule = "must be a language model, such as a GPT"
        raise CheckpointError(f"{path}: holds {kind_of(model)} ({rule})")
    return model, tokenizer


def open_model(path: str | os.PathLike[str], *, to_decode: bool = False) -> Loaded:
    """The same, with the checkpoint. A model whose weights are not all finite is refused: it can do nothing.

    A language model that is only decoded with, `to_decode`, has its weights in its file: the decoder that is made of it
    reads them once, into its own format.
    """
    loading.check_there(Path(path))
    if is_run(path):
        saved = best_checkpoint(Path(path))
        loaded = Loaded(*build(saved, path, to_decode=to_decode), saved)
    elif is_adapter(Path(path)):
        loaded = Loaded(*load_adapter(Path(path), to_decode=to_decode), None)
    else:
        found = loading.open_model(path)
        assert found.tokenizer is not None
        loaded = Loaded(found.to_decode() if to_decode else found.load(), found.tokenizer, None)
    if is_stored(loaded.model):  # says so when they are read
        _say_where(loaded.model, path)
        return loaded
    from chainrule.doctor.nonfinite import broken

    if entry := broken(loaded.model):
        raise CheckpointError(
            f"{path}: {entry.place} is {entry.value} (weights must be finite: take an earlier "
            "checkpoint, or train again with a smaller lr)"
        )
    return loaded


def _say_where(model: Model, path: str | os.PathLike[str]) -> None:
    """What is wrong with a weight that is still in its file is said of this path."""

    def told(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except FormatError as error:
            raise CheckpointError(f"{path}: {error}") from None

    for _, param in model.named_parameters():
        if isinstance(param, StoredParam) and param.read is not None:
            param.read = partial(told, param.read)
            if param.read_blocks is not None:
                param.read_blocks = partial(told, param.read_blocks)


def load_vectors(path: str | os.PathLike[str]) -> tuple[list[str], npt.NDArray[Any]]:
    """Words and matrix (V, C) of a run (its newest checkpoint), of a checkpoint, or of a text file of vectors."""
    if Path(path).is_file():
        return io.read_vectors(Path(path))
    from chainrule.tasks.word_vectors import known_vectors

    model, tokenizer = build(load_checkpoint(path, word_vectors=True), path)
    return known_vectors(model, tokenizer)  # type: ignore[arg-type]  # both are of word vectors


def is_run(path: str | os.PathLike[str]) -> bool:
    """True for a run or one of its checkpoints; all else is a model without its training, which `io.load` reads."""
    return not (Path(path).is_file() or RunFolder(Path(path)).is_model or is_adapter(Path(path)))


def best_checkpoint(path: Path) -> Checkpoint:
    """What is used of a run: the checkpoint that the newest one names as the best, or the newest itself."""
    newest, folder = load_checkpoint(path), RunFolder(path)
    best = _best_step(path, newest.training)
    if folder.is_checkpoint or best == newest.step:
        return newest
    try:
        return checkpoint.load(folder.checkpoint(best))
    except CheckpointError as error:
        warnings.warn(f"{error}; taking step {newest.step:,} instead", ChainruleWarning, stacklevel=3)
        return newest


def steps_in_use(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Of a run the step whose checkpoint `load` takes, and its newest one; None for all else."""
    folder = RunFolder(Path(path))
    if folder.is_checkpoint or not folder.saved():
        return None
    try:
        training = checkpoint.read_training(folder.saved()[-1])
        best, newest = _best_step(path, training), int(training["step"])
    except CheckpointError:  # damaged: loading has said what it took instead
        return None
    return (best, newest) if folder.checkpoint(best).is_dir() else None


def _best_step(path: str | os.PathLike[str], training: dict[str, Any]) -> int:
    """The step whose checkpoint is used, by the training.json of the newest one."""
    from chainrule.train.best import Best

    with this_version(path):
        newest, best = int(training["step"]), Best.from_dict(training).step
        last = (training.get("train") or {}).get("keep") == "last"
    return newest if last or best < 0 else best


def load_checkpoint(path: str | os.PathLike[str], *, word_vectors: bool = False) -> Checkpoint:
    """The checkpoint at `path`, or the newest of the run there: of a model of text, or of word vectors."""
    saved = checkpoint.load(Path(path))
    found = family_name(saved.config)
    family = found if isinstance(found, str) else ""
    if family in (KNOWN if word_vectors else WORD_VECTORS):
        kinds = ("a model of text", "word vectors")
        holds, wanted = kinds if word_vectors else kinds[::-1]
        from chainrule.tasks.registry import task_of

        task = task_of(family)
        raise CheckpointError(
            f"{path}: holds {holds} ({found}), not {wanted} (must be used with chainrule {task.used_by}, or trained on "
            f"with chainrule {task.command.format(family=family)} --resume)"
        )
    if word_vectors and family not in WORD_VECTORS:
        raise CheckpointError(f"checkpoint: model_type {found!r} (must be {' or '.join(WORD_VECTORS)})")
    return saved


def build(
    saved: Checkpoint, path: str | os.PathLike[str], *, to_decode: bool = False
) -> tuple[Model, Tokenizer]:
    """The model and the tokenizer in a checkpoint of the run at `path`; `to_decode` as in `open_model`."""
    try:
        if about := saved.adapter_config:
            run = run_of(Path(path))
            model, *_ = adapter.build(saved.config, saved.adapter_model, about, run, to_decode=to_decode)
        else:
            opened = to_opened(saved.config, saved.model)
            model = opened.to_decode() if to_decode else opened.load()
    except (TypeError, ValueError, OverflowError) as error:
        if about and isinstance(error, ChainruleError):  # may be of its base, which is another model
            raise
        raise CheckpointError(f"checkpoint: config.json does not fit this version ({error})") from error
    tokenizer = pretrained.to_tokenizer(vars(saved))
    tokens, rows = tokenizer.vocab_size, model.config.vocab_size
    imported = not saved.training.get("from_seed", True)  # may have more rows than tokens
    if tokens != rows and not (imported and tokens < rows):
        raise CheckpointError(f"checkpoint: tokenizer of {tokens} tokens, model of {rows} (must be equal)")
    return model, tokenizer


def run_of(path: Path) -> Path:
    """The directory of the run that a path is, or is a checkpoint of."""
    return path.parent.parent if RunFolder(path).is_checkpoint else path


def is_tokenizer(asked: Tokenizer | str | None, tokenizer: Tokenizer) -> bool:
    """No other one is asked for, by its path, as char or bpe:4000, or itself."""
    if asked is None or isinstance(asked, Tokenizer):
        return asked is None or tokenizer == asked
    from chainrule.text.training.recipe import Recipe

    recipe = Recipe.of(asked)
    return recipe.fits(tokenizer) if recipe else tokenizer == io.load_tokenizer(asked)


@contextmanager
def this_version(path: str | os.PathLike[str]) -> Iterator[None]:
    """What is missing in here, or of another form, is in the training.json of another version."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        if isinstance(error, CheckpointError | DataError):
            raise
        raise CheckpointError(f"{path}: training.json does not fit this version ({error})") from error


def trained_on(saved: Checkpoint, path: str | Path, config: Any = None) -> tuple[Origin, Any]:
    """The data that the run of a checkpoint learns from, and its settings, of a `TrainConfig` unless told."""
    if config is None:
        from chainrule.train.config import TrainConfig as config
    with this_version(path):
        facts, settings = saved.training["data"], saved.training["train"]
        origin = Origin(facts["name"], facts["sha256"], Columns(**facts.get("columns", {})))
        _check_types({"name": "", "sha256": ""}, facts)
        _check_types({field.name: field.default for field in fields(config)}, settings)
        return origin, config(**settings)


def _check_types(usual: dict[str, Any], facts: dict[str, Any]) -> None:
    """Facts whose usual value is a text or an integer are one too."""
    for name, value in usual.items():
        if type(value) in (str, int) and name in facts and type(facts[name]) is not type(value):
            raise TypeError(f"{name} is {facts[name]!r}, must be of type {type(value).__name__}")


def unchanged(folder: str | Path, find: Callable[[str, Columns], D], origin: Origin) -> D:
    """The data a run began with; it can continue on no others."""
    try:
        corpus = find(origin.name, origin.columns)
    except DataError as error:
        raise DataError(f"{folder}: the text of the run is not there: {error}; put it back") from error
    if corpus.sha256 != origin.sha256:
        raise DataError(
            f"{folder}: the corpus {corpus.name} has changed since the run began (SHA-256 {corpus.sha256[:12]}, "
            f"was {origin.sha256[:12]}; put the old text back, or begin a new run)"
        )
    return corpus
