"""What the directory of a run tells about it, read without its data and without building the model."""

from __future__ import annotations

import tomllib
import warnings
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from chainrule.errors import CheckpointError, ConfigError
from chainrule.files import is_number, regular_bytes
from chainrule.runs import checkpoint
from chainrule.runs.checkpoint import Checkpoint
from chainrule.runs.folder import STEP, RunFolder
from chainrule.runs.records import environment
from chainrule.train.log import read

State = Literal["running", "finished", "interrupted", "failed", "damaged", "empty"]


@dataclass(frozen=True)
class History:
    """A run from the outside."""

    folder: Path
    state: State
    problem: str
    """What is damaged, or why it failed; else nothing."""
    family: str
    settings: dict[str, Any] = field(repr=False)
    """Of the model and of the training, by name."""
    environment: dict[str, Any] = field(repr=False)
    """What stands in environment.json."""
    records: list[dict[str, Any]] = field(repr=False)
    """What stands in log.jsonl."""

    @classmethod
    def of(cls, folder: str | Path, records: list[dict[str, Any]] | None = None) -> History:
        """The run in a directory, with the `records` of its log, or those of them that are wanted."""
        folder = Path(folder)
        files = RunFolder(folder)
        if not files.log.is_file():
            checkpoint.find(folder)  # says what it is instead
        known = environment.read(folder)
        saved, damage = _newest(folder)
        state, problem = _state(folder, saved, damage, known)
        settings = _settings(folder, saved)
        family = known.get("family") or settings.get("family") or settings.get("model_type") or "-"
        return cls(
            folder,
            state,
            problem,
            str(family),
            settings,
            known,
            read(files.log) if records is None else records,
        )

    @property
    def parameters(self) -> int | None:
        """How many numbers the model learns."""
        return self.environment.get("parameters") or next((r.get("parameters") for r in self.records), None)

    @property
    def steps(self) -> int:
        """Steps made, as far as the log knows; epochs of word vectors."""
        return max((record["step"] for record in self.records if "loss" in record), default=0)

    @property
    def best(self) -> tuple[int, float] | None:
        """The step with the lowest validation loss, and that loss; also of the one where it was interrupted."""
        found = [(loss, step) for step, loss in self.series("validation")]
        last = (environment.stretches(self.environment) or [{}])[-1]
        if is_number(last.get("validation")) and type(last.get("to")) is int:
            found.append((float(last["validation"]), last["to"]))
        return (min(found)[1], min(found)[0]) if found else None

    @property
    def scores(self) -> dict[str, float]:
        """What the task measures beside the loss, such as the accuracy of a classifier, where the first is highest."""
        scored = [found for record in self.records if (found := scores_of(record))]
        return max(scored, key=lambda each: next(iter(each.values()))) if scored else {}

    @property
    def bits_per_byte(self) -> float | None:
        """The lowest validation loss in the unit that does not depend on the tokenizer, if it has a meaning here."""
        per_nat = self.environment.get("per_nat")
        factor = (per_nat or {}).get("bits_per_byte")
        return None if factor is None or self.best is None else float(factor) * self.best[1]

    @property
    def seconds(self) -> float:
        """Spent on training in all stretches; by the clock where the log does not say."""
        logged = [s for record in self.records if (s := record.get("seconds")) is not None]
        return float(logged[-1]) if logged else sum(map(_length, environment.stretches(self.environment)))

    def series(self, name: str) -> list[tuple[int, float]]:
        """The finite numbers of this name in the log, with their steps."""
        return [(r["step"], float(r[name])) for r in self.records if is_number(r.get(name))]

    @property
    def machine(self) -> dict[str, Any]:
        """What it was last trained with, and on."""
        made = environment.stretches(self.environment)
        known = {name: made[-1].get(name) for name in environment.machine()} if made else {}
        data = self.environment.get("data")
        return known | ({"data": data.get("sha256")} if isinstance(data, dict) else {})


def scores_of(record: dict[str, Any]) -> dict[str, float]:
    """What an evaluation measured beside the loss; nothing of another record."""
    known = {"step", "validation", "seconds", "entropy", "parameters"}
    return {
        name: float(value)
        for name, value in record.items()
        if "validation" in record and name not in known and isinstance(value, int | float)
    }


def histories(folder: str | Path) -> list[History]:
    """Every run in a folder and the folders in it, by name."""
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such directory"
        raise ConfigError(f"{folder}: {what} (must be a directory with runs in it)")
    logs = sorted(folder.rglob(RunFolder(folder).log.name))
    return [History.of(log.parent) for log in logs if not log.parent.name.startswith(".")]


def _newest(folder: Path) -> tuple[Checkpoint | None, str]:
    """The newest good checkpoint, and what is wrong with one that is newer."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            saved = checkpoint.load(folder)
        except CheckpointError as error:
            damaged = any(RunFolder(folder).checkpoints.glob(f"{STEP}*"))
            return None, str(error) if damaged else ""
    return saved, str(seen[0].message) if seen else ""


def _state(folder: Path, saved: Checkpoint | None, damage: str, known: dict[str, Any]) -> tuple[State, str]:
    if RunFolder(folder).busy:
        return "running", ""
    if damage:
        return "damaged", damage
    if saved is None:
        return "empty", ""
    stretches = environment.stretches(known)
    how = stretches[-1].get("how", "") if stretches else ""
    if how in ("", "stopped", "KeyboardInterrupt"):
        planned = saved.training.get("total")  # all there is to go by in runs older than environment.json
        done = not stretches and isinstance(planned, int) and saved.step >= planned
        return ("finished" if done else "interrupted"), ""
    return ("finished", "") if how == "finished" else ("failed", str(how))


def _settings(folder: Path, saved: Checkpoint | None) -> dict[str, Any]:
    """As the command line wrote them, or as the checkpoint has them; an extended run has other steps by now."""
    try:
        written = tomllib.loads(regular_bytes(RunFolder(folder).settings).decode())
    except (OSError, ValueError):  # of a run made by a program
        written = dict(saved.config) if saved else {}
    training = saved.training.get("train") if saved else None
    now = dict(training) if isinstance(training, dict) else {}
    if now.get("budget") is not None:  # which decides how many steps there are
        now.pop("max_steps", None)
    return written | {name: value for name, value in now.items() if value is not None}


def _length(stretch: dict[str, Any]) -> float:
    try:
        began, ended = (datetime.fromisoformat(stretch[key]) for key in ("began", "ended"))
        return (ended - began).total_seconds()
    except (KeyError, TypeError, ValueError):
        return 0.0
