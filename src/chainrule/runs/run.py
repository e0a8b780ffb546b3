"""A run: a directory with a log and checkpoints, and the task, model and trainer behind it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.autograd import precision
from chainrule.data import CHOSEN, Columns, Shards
from chainrule.distributed import world
from chainrule.files import write
from chainrule.io import load_tokenizer
from chainrule.io.hf import pretrained
from chainrule.models import Model, describe
from chainrule.models.tuning import Method
from chainrule.random import seed
from chainrule.runs import checkpoint
from chainrule.runs.checkpoint import Checkpoint
from chainrule.runs.folder import RunFolder, make_free
from chainrule.runs.load import build, first_model, load_checkpoint, trained_on, unchanged
from chainrule.runs.needs import facts_in, named_model, same_functions, same_model
from chainrule.runs.progress import flat, progress_of, replan, restore
from chainrule.runs.stretch import Stretch
from chainrule.runs.trainers import AnyConfig, trainer_of
from chainrule.runs.tuned.adapter import check_method
from chainrule.runs.tuned.tuning import Tuning
from chainrule.runs.warm_start import Start, checked_start, embed_words, own_tokenizer
from chainrule.tasks.named import Data, facts_of
from chainrule.tasks.registry import task_of, task_of_model
from chainrule.tasks.setup import Setup
from chainrule.text import Tokenizer
from chainrule.train.config import Keeping, TrainConfig, WordTrainConfig, defaults
from chainrule.train.plan import Plan
from chainrule.train.trainer import Result

if TYPE_CHECKING:
    from rich.console import Console


class Run:
    """Training of a model of any family on the data of its task; of a language model, on a corpus or on shards.

    >>> import chainrule as cr
    >>> run = cr.runs.Run.new("runs/mine", cr.data.load("book.txt"), model="llama", n_layer=2)  # doctest: +SKIP
    >>> run.train()  # doctest: +SKIP
    """

    def __init__(self, folder: Path, setup: Setup, config: AnyConfig) -> None:
        self.folder = folder
        self.files = RunFolder(folder)
        self.task, self.model = setup.task, setup.model
        self.corpus: Data = self.task.corpus
        self.tokenizer = self.task.tokenizer
        self.from_seed = True  # or from the weights of another model, which no seed gives again
        self.embedded = 0  # tokens that began with vectors of words
        self.tuning: Tuning | None = None
        """By which method a trained model is tuned; None if it is trained as a new one is."""
        self.forecast: tuple[float, float, int] | None = None
        """Bits per byte to expect, from and to, and the number of steps, where sizes were chosen for a budget."""
        self.config = config
        self.trainer = trainer_of(setup, config)

    @classmethod
    def new(
        cls,
        folder: str | Path,
        data: Data | str | Path,
        config: AnyConfig | None = None,
        model: str = "gpt",
        tokenizer: Tokenizer | str | None = None,
        start: Model | str | Path | Start | None = None,
        *,
        task: str = "",
        method: Method | None = None,
        keeping: Keeping | None = None,
        columns: Columns = CHOSEN,
        vectors: str | Path | None = None,
        draft: bool = False,
        numbered: bool = False,
        **size: Any,
    ) -> Run:
        """Start in an empty or new directory.

        `data` may be a name or a path, `model` is the name of a family, `size` the fields of its config but for those
        that the data decide, such as the vocabulary. `tokenizer` may be the path of one, or char, bpe, bpe:4000,
        unigram or wordpiece to learn one; without, every character of a corpus is a token; shards have their own. With
        `start`, a model or the path of one, the run begins with its weights, or with its body and a new head; with
        `vectors` of words, a file or a run, tokens of a BERT that are words begin with these. Without `config` the
        settings, and sizes that are not given, suit the amount of data. `task` is the name of one that is not that of
        the family. With a `method` of `models.tuning` only what it says learns, and unless that is everything the run
        keeps it alone: then `start` is a path, by which the rest is found again (or a `Start` of it, which this
        uses up: its weights become those of the run); `keeping` says how what the base knows
        is measured and kept. `columns` are those of a table. Of a draft nothing is written. A `numbered` run takes the
        next name, folder-2, if there is one already.
        """
        ranks = world()
        draft = draft or not ranks.first  # which alone writes
        if not (draft or numbered):
            RunFolder(folder).check_free()
        check_method(method, start, draft)
        opened, start, tokenizer = checked_start(start, tokenizer, model, vectors)
        kind = task_of(model, task)
        found: Any = kind.find(data, columns) if isinstance(data, str | os.PathLike) else data
        if isinstance(tokenizer, str):
            if isinstance(found, Shards):
                raise own_tokenizer(tokenizer, data)
            tokenizer = kind.learned(found, tokenizer) or load_tokenizer(tokenizer)
        if config is None:
            suited = kind.suited(found, start=start, tokenizer=tokenizer)
            config, size = replace(defaults(model), **suited.training), suited.sizes | size
        seed(config.seed)
        size |= {name: named_model(size[name]) for name in kind.models if size.get(name)}
        read_here = opened is not None  # nobody else has its weights: a second copy would be for nothing
        setup = Setup.new(model, found, tokenizer, config, start, task, method, read_here, **size)
        if opened is not None:
            opened.taken = True
        embedded = 0 if vectors is None else embed_words(setup.model, setup.task.tokenizer, vectors)
        run = cls(Path(folder), setup, config)
        run.from_seed, run.embedded = start is None and vectors is None, embedded
        if method is not None and opened is not None and isinstance(config, TrainConfig):
            method = run.task.tuned_by(method)
            run.tuning = Tuning.new(method, opened, keeping or Keeping(), run.task, run.model, config)
            run.tuning.begin(run.trainer, run.task, run.model, run.model.state)
        if not draft:
            run._make_folder(numbered)
        run.folder = ranks.from_first(run.folder)
        run.files = RunFolder(run.folder)
        return run

    def _make_folder(self, numbered: bool) -> None:
        """Make the directory, or the next one that is free."""
        # Shards are read to the end here: damaged ones are refused before anything is written.
        facts_of(self.corpus)
        if numbered:
            self.folder = make_free(self.folder, self.files.log.name)
        else:
            self.files.make()

    @classmethod
    def resume(cls, folder: str | Path, *, word_vectors: bool = False, **functions: Any) -> Run:
        """Continue from the newest checkpoint of a run, as if it had never stopped.

        `functions` are those that its task was given, such as a reward: a run keeps their names, not what they do.
        """
        RunFolder(Path(folder)).refuse_checkpoint()
        return cls.restored(folder, load_checkpoint(folder, word_vectors=word_vectors), **functions)

    @classmethod
    def restored(cls, folder: str | Path, saved: Checkpoint, **functions: Any) -> Run:
        """The run in `folder` as it was when `saved` was made."""
        model, tokenizer = build(saved, folder)
        tuning = Tuning.restored(saved, Path(folder))
        if tuning is not None and tuning.base is None:
            tuning.method.apply(model)
        kind = task_of_model(model, saved.training.get("task", ""))
        origin, config = trained_on(saved, folder, WordTrainConfig if kind.by_epoch else TrainConfig)
        data = unchanged(folder, kind.find, origin)
        options: dict[str, Any] = {name: saved.training.get(name) for name in kind.options}
        options |= {name: same_model(folder, name, options[name]) for name in kind.models if options[name]}
        options |= same_functions(folder, {name: options[name] for name in kind.functions}, functions)
        task = kind.of(data, tokenizer, **options)
        if kind.from_start and saved.step:
            task = task.compared_with(first_model(folder))
        run = cls(Path(folder), Setup.of(task, model, config), config)
        restore(run.trainer, run.model, saved, folder)
        run.from_seed = saved.training.get("from_seed", True)
        if tuning is not None:
            run.tuning = tuning
            first = run.files.checkpoint(0)
            tuning.begin(
                run.trainer, run.task, model, lambda: build(checkpoint.load(first), folder)[0].state()
            )
            tuning.kept.restore(run.trainer.general, saved.training["keeping"])
        return run

    def extend(self, max_steps: int) -> None:
        """Continue to a later step than the run was planned for.

        From here on the learning rate is that of a run of `max_steps`: where it had begun to fall, it is high again.
        So are batches that depend on the number of steps, as those of scheduled sampling do.
        """
        trainer = self.trainer
        replan(trainer, max_steps)
        size, seed = trainer.config.batch_size, trainer.config.seed
        with precision(trainer.config.precision):
            trainer.batches = self.task.batches(self.model, batch_size=size, seed=seed, steps=max_steps)
            if self.tuning is not None:
                trainer.batches = self.tuning.mixed(self.task, self.model, trainer.batches, trainer.config)

    @property
    def method(self) -> Method | None:
        """By which a trained model is tuned."""
        return self.tuning.method if self.tuning else None

    @property
    def family(self) -> str:
        """Of the model, as the command line names it."""
        return str(describe(self.model)["model_type"])

    @property
    def finished(self) -> bool:
        """All planned steps are done."""
        return self.trainer.finished

    def change(self, **settings: Any) -> None:
        """Continue with other settings, fields of the configuration that no step made so far depends on."""
        trainer = self.trainer
        trainer.config = replace(trainer.config, **settings)
        trainer.plan = Plan(trainer.config, trainer.plan.total)
        if "patience" in settings:
            trainer.best_so_far.waited = 0
        if {"shard_optimizer", "compile"} & settings.keys():
            trainer.gradient.prepare()
            trainer.gradient.load(checkpoint.load(self.folder).optimizer)

    def train(self, console: Console | None = None, tell: Callable[[str], None] | None = None) -> Result:
        """Train to the end, or until Ctrl-C, with a log and checkpoints in the directory.

        How far a long step is, such as an epoch of word vectors, is told to `tell` if it is given, else printed.
        """
        stretch = Stretch(self)
        with stretch.open(console, tell):
            result = self.trainer.run(stretch.log, stretch.save, stretch.sample)
            stretch.end(result)
        return result

    def save(self) -> Path:
        """Write a checkpoint of the run as it is now; the first rank does, the others give it what they keep."""
        trainer, step = self.trainer, self.trainer.step
        moments = step.arrays()
        if not world().first:
            return self.folder
        training = progress_of(trainer) | {
            **({} if step.by_epoch else {"from_seed": self.from_seed}),
            **({"task": self.task.name} if self.task.name else {}),
            **(self.tuning.facts(trainer) if self.tuning else {}),
            **facts_in(self.folder, self.task),
            "train": asdict(self.config if step.by_epoch else trainer.config),
            "data": facts_of(self.corpus),
        }
        tuning, model, tokenizer = self.tuning, self.model, self.tokenizer
        trained = (tuning.arrays(model) if tuning else model.state()) if step.average else {}
        with step.averaged():
            adapter = tuning.parts(model, tokenizer, self.folder) if tuning else None
            arrays = None if step.average else model.arrays()  # a mean leaves its place again: it is copied
            used = adapter or vars(pretrained.parts(model, tokenizer, arrays))
        carried = flat(step.state)
        saved = Checkpoint(**used, trained=trained, optimizer=moments, training=training, carried=carried)
        # Kept beside the newest: the best step, and first weights that no seed gives again.
        best = {trainer.best_so_far.step} if trainer.config.keep == "best" else set()
        return checkpoint.save(self.folder, saved, keep=best if self.from_seed else best | {0})

    def keep_settings(self, text: str) -> None:
        """Write the settings of the run, as a file for --config."""
        if world().first:
            write(self.files.settings, text.encode())

    def sample(self) -> str:
        """What the model writes now, with the running mean of the weights if there is one."""
        with self.trainer.step.averaged():
            return self.task.sample(self.model, self.trainer.config.seed)

    def baselines(self) -> dict[str, float]:
        """What counting achieves on the same validation text."""
        return self.task.baselines()
