"""Trained models of the directory of runs, and imported ones there: which there are, at which steps, and one of them
ready to be looked at."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.inspect.embeddings import WordVectors
from chainrule.io.hf.architectures import family_name
from chainrule.models import registry
from chainrule.models.bert.body import BERT
from chainrule.runs import RunFolder
from chainrule.runs.folder import step_of
from chainrule.runs.records import environment
from chainrule.text import LowercaseWordTokenizer
from chainrule.web.jobs import Tell, silent
from chainrule.web.runs.overview import READERS, Runs

KEPT = 3  # models in memory
WAIT = 0.2  # seconds after which one that waits for a model says so, and may be canceled
FORMATS = ("config.json", "*.gguf")  # of imported models: a directory of Hugging Face, or a file


@dataclass
class Loaded:
    """A model, read when it is first looked at; one thread at a time looks at it."""

    path: Path
    model: Any = None
    tokenizer: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """What was computed of it and does not change."""

    bare: bool = False
    """It is a body without a head: it is looked at as an embedder, the mean of its rows."""

    def read(self) -> None:
        if self.model is None and family_of(self.path) in registry.WORD_VECTORS:
            self.model = WordVectors(*cr.runs.load_vectors(self.path))
            self.tokenizer = LowercaseWordTokenizer.of(self.model.words)
        elif self.model is None:
            model, self.tokenizer = cr.load(self.path)
            self.bare = isinstance(model, BERT)
            self.model = cr.models.fine_tune(model, cr.models.BERTEmbedder) if self.bare else model


def family_of(path: Path) -> str:
    """Of a run or one of its checkpoints, as it says itself; of an imported model nothing."""
    return str(environment.read(RunFolder(path).run.path).get("family", ""))


class Models:
    """The models of the runs, and those without a run."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._loaded: OrderedDict[tuple[Path, int], Loaded] = OrderedDict()
        self._lock = threading.Lock()

    def listed(self, families: tuple[str, ...] = READERS) -> list[dict[str, Any]]:
        """Runs of these families that have a checkpoint, with the steps of their checkpoints; then imported models,
        which have none."""
        found: list[dict[str, Any]] = []
        for name in self.runs.names():
            path = self.runs.path(name)
            family = family_of(path)
            steps = [step_of(saved) for saved in RunFolder(path).saved()]
            if steps and family in families:
                found.append({"name": name, "family": family, "steps": steps})
        imported = self.imported(families)
        return found + [{"name": name, "family": family, "steps": []} for name, family in imported]

    def imported(self, families: tuple[str, ...] = READERS) -> list[tuple[str, str]]:
        """Models of other programs below the directory, and what their files call their family."""
        found = []
        for file in (file for pattern in FORMATS for file in self.runs.files(pattern)):
            path = file.parent if file.suffix == ".json" else file
            if path == self.runs.folder or not RunFolder(path).is_model:
                continue
            family = _family(file)
            if family in families or family not in registry.ALL:
                found.append((path.relative_to(self.runs.folder).as_posix(), family))
        return sorted(found)

    def path(self, name: str, step: int | None) -> Path:
        """The directory of a run's model, or of its checkpoint at a step; that of an imported one."""
        folder = RunFolder(self.runs.path(name))
        if folder.is_model and step is None:
            return folder.path
        if not folder.log.is_file():
            raise ConfigError(
                f"run {name[:80]!r}: not in {self.runs.folder} (it was deleted or moved: choose another)"
            )
        saved = folder.saved()
        if not saved:
            raise ConfigError(
                f"run {name[:80]!r}: has no checkpoint yet (wait for the first, or choose another run)"
            )
        if step is None:
            return folder.path
        found = folder.checkpoint(step)
        if not found.is_dir():
            steps = ", ".join(str(step_of(each)) for each in saved)
            raise ConfigError(f"run {name[:80]!r}: no checkpoint at step {step} (there are {steps})")
        return found

    @contextmanager
    def at(self, *wanted: tuple[str, int | None], tell: Tell = silent) -> Iterator[list[Loaded]]:
        """Models, each read once, for the one thread that looks at them now."""
        found = [self._entry(self.path(*each), each[1]) for each in wanted]
        with ExitStack() as stack:
            for each in sorted({id(one): one for one in found}.values(), key=lambda one: str(one.path)):
                while not each.lock.acquire(timeout=WAIT):  # in one order: no two threads wait for each other
                    tell("waiting for another look at this model", None)
                stack.callback(each.lock.release)
                if each.model is None:
                    tell("loading the model", None)
                each.read()
            yield found

    def _entry(self, path: Path, step: int | None) -> Loaded:
        folder = RunFolder(path)
        newest = folder.saved()[-1] if step is None and not folder.is_model else path
        key = (path, newest.stat().st_mtime_ns)
        with self._lock:
            found = self._loaded.setdefault(key, Loaded(path))
            self._loaded.move_to_end(key)
            while len(self._loaded) > KEPT:
                self._loaded.popitem(last=False)
        return found


def _family(file: Path) -> str:
    if file.suffix == ".gguf":
        return "gguf"
    try:
        return str(family_name(json.loads(file.read_bytes())))
    except (OSError, ValueError, AttributeError):
        return "unknown"
