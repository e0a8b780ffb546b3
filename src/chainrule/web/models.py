"""Trained models of the directory of runs: which there are, at which steps, and one of them ready to be looked at."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chainrule as cr
from chainrule.errors import ChainruleError, ConfigError
from chainrule.runs import RunFolder
from chainrule.runs.folder import step_of
from chainrule.runs.records import environment
from chainrule.text import prompt_ids
from chainrule.web.runs.overview import READERS, Runs

KEPT = 2  # models in memory


@dataclass
class Loaded:
    """A model in memory; one thread at a time looks at it."""

    path: Path
    model: Any
    tokenizer: Any
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: dict[str, Any] = field(default_factory=dict)
    """What was computed of it and does not change."""


def suited(loaded: Loaded, texts: tuple[str, ...]) -> str:
    """The first of these texts that the tokenizer knows and half of the context holds; else some tokens of its own."""
    tokenizer = loaded.tokenizer
    for text in texts:
        with suppress(ChainruleError):
            if 0 < len(prompt_ids(tokenizer, text)) <= int(loaded.model.context) // 2:
                return text
    return str(tokenizer.decode(range(min(4, tokenizer.vocab_size))))


class Models:
    """The models of the runs."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._loaded: OrderedDict[tuple[Path, int], Loaded] = OrderedDict()
        self._lock = threading.Lock()

    def listed(self, families: tuple[str, ...] = READERS) -> list[dict[str, Any]]:
        """Runs of these families that have a checkpoint, with the steps of their checkpoints."""
        found = []
        for name in self.runs.names():
            path = self.runs.path(name)
            family = str(environment.read(path).get("family", ""))
            steps = [step_of(saved) for saved in RunFolder(path).saved()]
            if steps and family in families:
                found.append({"name": name, "family": family, "steps": steps})
        return found

    def path(self, name: str, step: int | None) -> Path:
        """The directory of a run's model, or of its checkpoint at a step."""
        folder = RunFolder(self.runs.path(name))
        if step is None:
            if not folder.saved():
                raise ConfigError(
                    f"run {name[:80]!r}: has no checkpoint yet (wait for the first, or choose another run)"
                )
            return folder.path
        found = folder.checkpoint(step)
        if not found.is_dir():
            steps = ", ".join(str(step_of(saved)) for saved in folder.saved()) or "none"
            raise ConfigError(f"run {name[:80]!r}: no checkpoint at step {step} (there are {steps})")
        return found

    @contextmanager
    def at(self, name: str, step: int | None) -> Iterator[Loaded]:
        """A model, read once, for the one thread that looks at it now."""
        path = self.path(name, step)
        newest = RunFolder(path).saved()[-1] if step is None else path
        key = (path, newest.stat().st_mtime_ns)
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = Loaded(path, *cr.load(path))
                while len(self._loaded) > KEPT:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(key)
            found = self._loaded[key]
        with found.lock:
            yield found
