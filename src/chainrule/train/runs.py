"""A run: a directory with a log and checkpoints, and the data, tokenizer, model and trainer behind it."""

from __future__ import annotations

import errno
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from chainrule.errors import CheckpointError, ConfigError, DataError
from chainrule.files import alone
from chainrule.io import load, pretrained
from chainrule.io.architectures import to_model
from chainrule.io.loading import model_files
from chainrule.machine import check_memory
from chainrule.models import (
    LanguageModel,
    Model,
    RecurrentLM,
    describe,
    fine_tune,
    make,
    n_params,
)
from chainrule.models import family as family_of
from chainrule.models.rnn_lm import State
from chainrule.optim import EarlyStopping
from chainrule.random import seed
from chainrule.text import Tokenizer
from chainrule.train import checkpoint, environment, kinds
from chainrule.train.baselines import count_baselines
from chainrule.train.checkpoint import Checkpoint
from chainrule.train.config import TrainConfig
from chainrule.train.log import Log, read
from chainrule.train.loop import Result, Trainer
from chainrule.train.material import Data, Material, Text
from chainrule.train.materials import defaults, material_of
from chainrule.train.plan import Plan
from chainrule.train.preflight import examine

LOCK, LOG, SETTINGS = ".lock", "log.jsonl", "config.toml"
FIRST = {LOCK, LOG, SETTINGS, environment.FILE, "checkpoints"}  # what is there before the first step
HEAD = ("classes", "labels")  # what the head of a classifier follows from

# Fields of a model's config that say how it learns, not what it computes once it has learnt.
LEARNING = {"dropout", "label_smoothing", "scheduled_sampling"}

D = TypeVar("D", bound=Data)


class Run:
    """Training of a model of any family on the data of its task; of a language model, on a corpus or on shards.

    >>> import chainrule as cr
    >>> run = cr.train.Run.new("runs/mine", cr.data.load("book.txt"), model="llama", n_layer=2)  # doctest: +SKIP
    >>> run.train()  # doctest: +SKIP
    """

    def __init__(
        self, folder: Path, data: Data, material: Material, model: Model, config: TrainConfig
    ) -> None:
        self.folder = folder
        self.corpus = data
        self.material = material = material.fitted(model)
        self.tokenizer = material.tokenizer
        self.model: Any = model
        self.from_seed = True  # or from the weights of another model, which no seed gives again
        batches, exam = material.batches(model, config), material.exam(model, config)
        self.trainer = Trainer(model, batches, exam, config, material.tokenizer)

    @classmethod
    def new(
        cls,
        folder: str | Path,
        data: Data,
        config: TrainConfig | None = None,
        model: str = "gpt",
        tokenizer: Tokenizer | None = None,
        start: Model | None = None,
        **size: Any,
    ) -> Run:
        """Start in an empty or new directory.

        `model` is a name in `models.FAMILIES`, `size` the fields of its config but for those that the data decide,
        such as the vocabulary. Without a tokenizer every character of a corpus is a token; shards have their own.
        With `start` the run begins with the weights of that model, or with its body and a new head.
        """
        run = cls.draft(folder, data, config or defaults(model), model, tokenizer, start, **size)
        make_empty(run.folder, LOG)  # from now on the directory is taken
        return run

    @classmethod
    def draft(
        cls,
        folder: str | Path,
        data: Data,
        config: TrainConfig,
        model: str = "gpt",
        tokenizer: Tokenizer | None = None,
        start: Model | None = None,
        **size: Any,
    ) -> Run:
        """What `new` would start, to be looked at: nothing is written."""
        material = material_of(model).of(data, tokenizer)
        seed(config.seed)
        sizes = size | material.sizes()
        if start is None:
            check_memory(n_params({"model_type": model} | sizes))
            made = make(model, **sizes)
        else:
            made = begun(with_labels(start, sizes), model, **sizes)
        run = cls(Path(folder), data, material, made, config)
        run.from_seed = start is None
        return run

    @classmethod
    def resume(cls, folder: str | Path) -> Run:
        """Go on from the newest checkpoint of a run, as if it had never stopped."""
        refuse_checkpoint(Path(folder))
        return cls.restored(folder, kinds.load(folder, kinds.MODEL))

    @classmethod
    def restored(cls, folder: str | Path, saved: Checkpoint) -> Run:
        """The run in `folder` as it was when `saved` was made."""
        model, tokenizer = build(saved)
        kind = material_of(describe(model)["model_type"])
        try:
            config, facts = TrainConfig(**saved.training["train"]), saved.training["data"]
            data = unchanged(folder, kind.find, facts["name"], facts["sha256"])
            seconds, total = saved.training["seconds"], saved.training["total"]
            carried = nested(saved.carried, model)
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{folder}: training.json does not fit this version ({error})") from error
        run = cls(Path(folder), data, kind.of(data, tokenizer), model, config)
        trainer = run.trainer
        if trainer.average:  # what is used is the mean; what is trained lies beside it
            trainer.average.load(model.state())
            model.load(saved.trained)
        trainer.optimiser.load(saved.optimizer)
        trainer.steps, trainer.seconds = saved.step, seconds
        trainer.plan = Plan(config, total)
        trainer.scale.load(saved.training.get("scale", {}))
        trainer.skipped = saved.training.get("skipped", 0)
        if trainer.stopping:
            vars(trainer.stopping).update(saved.training["stopping"])
        trainer.carried = carried
        run.from_seed = saved.training.get("from_seed", True)
        return run

    def extend(self, max_steps: int) -> None:
        """Go on to a later step than the run was planned for.

        From here on the learning rate is that of a run of `max_steps`: where it had begun to fall, it is high again.
        So are batches that depend on the number of steps, as those of scheduled sampling do.
        """
        trainer = self.trainer
        planned = trainer.plan.total or trainer.steps
        if max_steps <= planned:
            raise ConfigError(f"resume: max_steps is {max_steps}, in the run {planned} (must be larger)")
        trainer.config = replace(trainer.config, max_steps=max_steps, budget=None)
        trainer.plan = Plan(trainer.config)
        trainer.batches = self.material.batches(self.model, trainer.config)
        if trainer.stopping:  # asked to go on, it is patient again
            trainer.stopping.waited = 0

    @property
    def finished(self) -> bool:
        """All planned steps are made."""
        return self.trainer.finished

    def change(self, **settings: Any) -> None:
        """Go on with other settings, fields of the configuration that no step made so far depends on any more."""
        trainer = self.trainer
        trainer.config = trainer.doctor.config = replace(trainer.config, **settings)
        trainer.plan = Plan(trainer.config, trainer.plan.total)
        patience = trainer.config.patience
        if not patience:
            trainer.stopping = None
        elif trainer.stopping is None:
            trainer.stopping = EarlyStopping(patience)
        else:
            trainer.stopping.patience = patience

    def train(self, console: Console | None = None) -> Result:
        """Train to the end, or until Ctrl-C, with a log and checkpoints in the directory."""
        trainer = self.trainer
        with (
            at_work(self.folder),
            nullcontext() if self.finished else self._recorded(),
            Log(
                self.log_path,
                tokens=trainer.batches.tokens,
                parameters=self.model.count(),
                resume_at=trainer.steps,
                console=console,
            ) as log,
        ):
            if trainer.steps:
                # what was said before is not said again
                deque(trainer.doctor.recall(read(self.log_path)), maxlen=0)
            else:
                trainer.tell(log, (f for f in examine(trainer) if f.level != "ok" or f.about == "forecast"))
                self.save()  # from here on the run can go on, whenever it is stopped

            def save() -> None:
                log.keep()  # or a checkpoint could outlive the records of its steps
                self.save()

            return trainer.run(log, save, self.sample)

    def _recorded(self) -> AbstractContextManager[None]:
        facts = {
            "family": describe(self.model)["model_type"],
            "parameters": self.model.count(),
            "data": self._data(),
            "per_nat": self.material.measures(1.0, self.trainer.exam),
        }
        return environment.recorded(self.folder, facts, lambda: (self.trainer.steps, self.finished))

    def _data(self) -> dict[str, str]:
        return {"name": self.corpus.name, "version": self.corpus.version, "sha256": self.corpus.sha256}

    def save(self) -> Path:
        """Write a checkpoint of the run as it is now."""
        trainer = self.trainer
        training = {
            "step": trainer.steps,
            "seconds": trainer.seconds,
            "total": trainer.plan.total,
            "scale": asdict(trainer.scale),
            "skipped": trainer.skipped,
            "stopping": vars(trainer.stopping) if trainer.stopping else None,
            "from_seed": self.from_seed,
            "train": asdict(trainer.config),
            "data": self._data(),
        }
        trained = self.model.state()
        with trainer.average.in_place() if trainer.average else nullcontext():
            used = pretrained.parts(self.model, self.tokenizer)
        return checkpoint.save(
            self.folder,
            Checkpoint(
                **vars(used),
                trained=trained if trainer.average else {},
                optimizer=trainer.optimiser.state(),
                training=training,
                carried=named(trainer.carried),
            ),
            keep=self._kept(),
        )

    def _kept(self) -> set[int]:
        """Steps whose checkpoints are worth keeping: the best, and first weights that no seed gives again."""
        best = set() if self.trainer.best is None else {self.trainer.best[0]}
        return best if self.from_seed else best | {0}

    @property
    def log_path(self) -> Path:
        return self.folder / LOG

    def sample(self) -> str:
        """What the model writes now, with the averaged weights if there are such."""
        average = self.trainer.average
        with average.in_place() if average else nullcontext():
            return self.material.sample(self.model, self.trainer.config.seed)

    def baselines(self) -> dict[str, float]:
        """What counting achieves on the same validation text."""
        if not isinstance(self.material, Text):
            raise ConfigError(f"{self.folder}: not a run on plain text (only there counting is a baseline)")
        return count_baselines(self.material.training, self.material.validation, self.tokenizer.vocab_size)


def named(state: State | None) -> dict[str, Any]:
    """The state of a recurrent model with a name for each array: layer.part"""
    return {f"{i}.{j}": part for i, layer in enumerate(state or ()) for j, part in enumerate(layer)}


def nested(arrays: Mapping[str, Any], model: Model) -> State | None:
    """The state that `named` took apart."""
    if not arrays or not isinstance(model, RecurrentLM):
        return None
    shape = enumerate(model.start(1))
    return tuple(tuple(arrays[f"{i}.{j}"] for j, _ in enumerate(layer)) for i, layer in shape)


def begun(start: Model, family: str, **sizes: Any) -> Model:
    """A model of a family with the weights of `start`: the same one, or its body with a new head.

    What only says how it learns may differ, and the context where no weight belongs to a position. All else must be
    the same: the weights would not fit, or would fit and mean something else, as with another number of heads.
    """
    for name, value in sizes.items():
        there = getattr(start.config, name, value)
        if there != value and name not in LEARNING and not _context_alone(start, name, value):
            raise ConfigError(
                f"train: {name} is {value}, in the model to begin with {there} (must be the same)"
            )
    kind = family_of(family).model
    if type(start) is not kind:
        return fine_tune(start, kind, **sizes)
    model = kind(replace(start.config, **sizes))
    model.load(start.state())
    return model


def _context_alone(model: Model, name: str, value: Any) -> bool:
    """It is the context that differs, and the model has as many weights with the other one."""
    there = describe(model)
    return name == "block_size" and n_params(there | {name: value}) == n_params(there)


def with_labels(start: Model, sizes: Mapping[str, Any]) -> Model:
    """The model itself if its head tells these labels apart, else its body with a new head for them."""
    head = {name: sizes[name] for name in HEAD if name in sizes and hasattr(start.config, name)}
    same = all(getattr(start.config, name) == value for name, value in head.items())
    return start if same else fine_tune(start, type(start), **head)


def trained_on(saved: Checkpoint, path: Path) -> tuple[str, str, TrainConfig]:
    """The name and the hash of the data that the run of a checkpoint learns from, and its settings."""
    try:
        facts = saved.training["data"]
        return facts["name"], facts["sha256"], TrainConfig(**saved.training["train"])
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: training.json does not fit this version ({error})") from error


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
    if is_model_alone(Path(path)):
        return load(path)
    return build(best_of(Path(path)))


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


def refuse_checkpoint(folder: Path) -> None:
    """What goes on is a run: its next checkpoint would otherwise be written into this one."""
    if (folder / "manifest.json").exists():
        raise ConfigError(f"resume: {folder} is a checkpoint (must be the directory of its run)")


@contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """Nobody else trains in this directory meanwhile; one in which not a step was made is removed at the end."""
    with alone(folder / LOCK):
        try:
            yield
        finally:
            if folder.is_dir() and _untouched(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _untouched(folder: Path) -> bool:
    """Nothing is in there but what a run begins with: not a step was made."""
    if any(record["step"] for record in read(folder / LOG)):
        return False
    saved = {path.name for path in (folder / "checkpoints").glob("*")}
    return {path.name for path in folder.iterdir()} <= FIRST and saved <= {"step_000000"}


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


def make_empty(folder: Path, *files: str) -> None:
    """Make a directory for results, with empty `files`; one with something in it is left alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder}: the directory is not empty (choose another, or resume that run)")
        for name in files:
            (folder / name).touch()
        if not os.access(folder, os.W_OK):  # found now, not after hours of training
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used for a run ({error.strerror})") from error


def free_folder(folder: Path) -> Path:
    """`folder` itself, or the first of folder-2, folder-3, ... that does not exist."""
    names = (folder if n == 1 else folder.with_name(f"{folder.name}-{n}") for n in count(1))
    return next(path for path in names if not path.exists())
