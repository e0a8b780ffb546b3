"""What training says: a live line on a terminal, plain lines elsewhere, and every step in `log.jsonl`."""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from chainrule.errors import ConfigError, DataError
from chainrule.files import is_number, plain, regular_bytes, write
from chainrule.machine import clock

if TYPE_CHECKING:
    from rich.console import Console

REFRESH = 0.1  # seconds between updates of the live line
PLAIN = 10.0  # seconds between plain lines

MOST_STEP = 2**53  # beyond it JSON's readers do not agree on numbers
NUMBERS = ("loss", "lr", "norm", "seconds", "validation", "entropy", "parameters")  # of a record, or null
OTHERS = {"finding": dict, "watch": dict, "baseline": dict, "sample": str, "skipped": str}

FRACTIONS = ("accuracy", "f1", "rewards/accuracies")  # scores in percent

Scores = Mapping[str, float | None]
NOTHING: Scores = MappingProxyType({})


class Logger:
    """Where a trainer reports. This one is silent; `train.Log` prints what it is told and writes it to a file."""

    closed = False
    """Nobody listens any more: training stops as if it were interrupted."""

    def step(
        self, step: int, loss: float, *, lr: float, norm: float | None, seconds: float, left: float
    ) -> None:
        """A step was made; `left` is the estimated time of those to come."""

    def progress(self, said: str) -> None:
        """How far a long step is."""

    def evaluation(
        self,
        step: int,
        loss: float,
        *,
        seconds: float,
        entropy: float | None = None,
        scores: Scores = NOTHING,
    ) -> None:
        """The model was evaluated; `scores` are those of its task, by name."""

    def note(self, step: int, record: dict[str, Any], *said: str) -> None:
        """Anything else: `record` for the log, if there is something in it, and lines to print now."""

    def keep(self) -> None:
        """Wait until all records are on the disk."""


class Log(Logger):
    """Writes `path`, one JSON object per line, and prints how far training is.

    A step is {"step", "loss", "lr", "norm", "seconds"}, an evaluation {"step", "validation", "seconds",
    "entropy"} with the mean entropy of the predictions, in nats, and the scores of the task by name; both say how
    many "parameters" the model has, since a loss means little without. A look inside is {"step", "watch": {...}},
    what the model writes {"step", "sample"}, a step left out {"step", "skipped"}, what the doctor found {"step",
    "finding": {...}}. An epoch of word vectors, which has no norm, is {"step", "loss", "lr"}. A number that is not
    finite is null. With `resume_at` the records of an earlier part of the run are kept up to that step.
    """

    def __init__(
        self,
        path: Path,
        *,
        per_step: int,
        unit: str = "tokens",
        parameters: int,
        resume_at: int = 0,
        console: Console | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.tell = tell
        from rich.console import Console  # here, because reading a log needs no terminal

        self.console = console or Console(highlight=False)
        self.per_step, self.unit = per_step, unit  # for the pace: tokens, texts or pairs
        self.scores: list[str] = []  # of the last evaluation
        self.parameters = parameters
        try:
            if resume_at:
                cut(path, resume_at)
            self.file = path.open("a" if resume_at else "w", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written ({error.strerror})") from error
        self.smooth: float | None = None  # the loss of single batches is noisy: show a running mean
        self.recent: deque[tuple[int, float]] = deque(maxlen=50)  # (step, seconds), for the pace
        self.said = time.monotonic()

    def __enter__(self) -> Log:
        from rich.live import Live

        terminal = self.console.is_terminal and not self.console.is_dumb_terminal and not self.tell
        self.live = Live(console=self.console, auto_refresh=False, transient=True) if terminal else None
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            with self._heard():
                self.live.stop()
        with suppress(OSError):  # what could not be written has been said
            self.file.close()

    def step(
        self, step: int, loss: float, *, lr: float, norm: float | None, seconds: float, left: float
    ) -> None:
        record = {"step": step, "loss": loss, "lr": lr}
        if norm is None:
            self._write(record, parameters=False)
            return
        self._write(record | {"norm": norm, "seconds": round(seconds, 3)})
        if math.isfinite(loss):  # or the mean would never be a number again
            self.smooth = loss if self.smooth is None else 0.95 * self.smooth + 0.05 * loss
        self.recent.append((step, seconds))
        if self._time_to_say():
            self._say(line(self._parts(step, left), self.console.width))

    def progress(self, said: str) -> None:
        if self.tell:
            self.tell(said)
        elif self._time_to_say():
            self._say(said)

    def _time_to_say(self) -> bool:
        now = time.monotonic()
        due = now - self.said >= (REFRESH if self.live else PLAIN)
        if due:
            self.said = now
        return due

    def evaluation(
        self,
        step: int,
        loss: float,
        *,
        seconds: float,
        entropy: float | None = None,
        scores: Scores = NOTHING,
    ) -> None:
        record = {"step": step, "validation": loss, "seconds": round(seconds, 3)}
        self._write(record | ({} if entropy is None else {"entropy": entropy}) | dict(scores))
        self.scores = [score_in_words(score) for score in scores.items()]
        said = [f"step {step:>6}", f"validation loss {loss:.4f}", *self.scores]
        self._print("   ".join([*said, clock(seconds)]))

    def note(self, step: int, record: dict[str, Any], *said: str) -> None:
        if record:
            self._write({"step": step} | record)
        for text in said:
            self._print(f"step {step:>6}   {text}")

    def _parts(self, step: int, left: float) -> list[str]:
        """What the line says, the most important first."""
        (first, since), (last, until) = self.recent[0], self.recent[-1]
        # Of one step no pace is known.
        pace = [(last - first) * self.per_step / (until - since)] if last > first else []
        return [
            f"step {step:>6}",
            f"loss {math.nan if self.smooth is None else self.smooth:.4f}",
            *self.scores,
            f"{clock(left)} left",
            *(f"{each:,.0f} {self.unit}/s" for each in pace),
        ]

    def _say(self, text: str) -> None:
        if self.live:
            with self._heard():
                from rich.text import Text

                self.live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
        else:
            self._print(text)

    def _print(self, text: str) -> None:
        with self._heard():
            self.console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Be silent from now on if the reader has gone, as in `... | head`: there is a run to save."""
        try:
            yield
        except (SystemExit, BrokenPipeError):  # the first by rich
            self.console.quiet = self.closed = True
        except OSError:  # a terminal that was closed, which also sends a signal
            self.console.quiet = True

    def keep(self) -> None:
        with self._writable():
            os.fsync(self.file.fileno())

    def _write(self, record: dict[str, Any], *, parameters: bool = True) -> None:
        with self._writable():
            self.file.write(encode(record | ({"parameters": self.parameters} if parameters else {})))
            self.file.flush()

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # such as a full disk
            raise ConfigError(f"{self.file.name}: cannot be written ({error.strerror})") from error


def line(parts: list[str], width: int) -> str:
    """As many of the parts as fit, at least one."""
    text = parts[0]
    for part in parts[1:]:
        if len(text) + 3 + len(part) > width:
            break
        text += "   " + part
    return text


def score_in_words(score: tuple[str, float | None]) -> str:
    """accuracy 87.3 %, F1 85.0 %, rewards/margins 0.1234"""
    name, value = score[0].replace("f1", "F1"), score[1]
    if value is None:
        return f"no {name}"
    return f"{name} {value:.1%}".replace("%", " %") if score[0] in FRACTIONS else f"{name} {value:.4f}"


def encode(record: dict[str, Any]) -> str:
    """A line of the log; what is not finite, such as the norm of a skipped step, is null."""
    return json.dumps(plain(record), allow_nan=False) + "\n"


def cut(path: Path, step: int) -> None:
    """Drop the records after `step`; the file is there at every moment, the old one or the new one."""
    kept = "".join(encode(record) for record in read(path) if record["step"] <= step)
    write(path, kept.encode())


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a log; a line that is damaged, such as a last one cut off by a crash, is left out."""
    try:
        lines = regular_bytes(path).split(b"\n") if path.exists() else []
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    return [record for text in lines if (record := record_of(text))]


def record_of(text: bytes) -> dict[str, Any] | None:
    """The record of a line; None if it is damaged."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    step = record.get("step")
    whole = type(step) is int and 0 <= step <= MOST_STEP
    numbers = all(record.get(name) is None or is_number(record[name]) for name in NUMBERS)
    others = all(isinstance(record.get(name, kind()), kind) for name, kind in OTHERS.items())
    return record if whole and numbers and others else None
