"""A log that is being written: its new records, its curves with few points, and what a table says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainrule.files import is_number
from chainrule.runs.records.history import scores_of
from chainrule.train.log import record_of


class Follow:
    """The records that were added to a log since the last call; a log that was cut or replaced begins anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity: tuple[int, int] | None = None
        self._read = 0
        self._rest = b""

    def new(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether the log begins anew, and its new records; the last line waits until it is whole."""
        try:
            with self.path.open("rb") as file:
                status = self.path.stat()
                identity = (status.st_dev, status.st_ino)
                anew = identity != self._identity or status.st_size < self._read
                if anew:
                    self._identity, self._read, self._rest = identity, 0, b""
                file.seek(self._read)
                data = file.read()
        except OSError:  # not there yet, or no longer
            anew = self._identity is not None
            self._identity, self._read, self._rest = None, 0, b""
            return anew, []
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return anew, [record for line in lines if (record := record_of(line))]


class Digest:
    """Of a log however long, the few records that its `History` needs for a table: the first one, the evaluations with
    the lowest loss and the best scores, the newest step and the newest time. They make no curve."""

    def __init__(self, path: Path) -> None:
        self._follow = Follow(path)
        self.clear()

    def clear(self) -> None:
        """Forget what was read: the log begins anew."""
        self._kept: dict[str, dict[str, Any]] = {}

    def records(self) -> list[dict[str, Any]]:
        """As they are now; only what was added since the last call is read."""
        anew, records = self._follow.new()
        if anew:
            self.clear()
        for record in records:
            self.add(record)
        return [*self._kept.values()]

    def add(self, record: dict[str, Any]) -> None:
        """The next record, kept if a table needs it."""
        kept = self._kept
        kept.setdefault("first", record)
        if is_number(record.get("validation")) and (
            "best" not in kept or record["validation"] < kept["best"]["validation"]
        ):
            kept["best"] = record
        if (scores := scores_of(record)) and (
            "scores" not in kept or _first(scores) > _first(scores_of(kept["scores"]))
        ):
            kept["scores"] = record
        if "loss" in record and ("step" not in kept or record["step"] > kept["step"]["step"]):
            kept["step"] = record
        if record.get("seconds") is not None:
            kept.pop("time", None)  # the newest is the last one: `History` reads its time
            kept["time"] = record


def _first(scores: dict[str, float]) -> float:
    return next(iter(scores.values()))


class Curve:
    """Points of a curve, at most `most` of them: when it is full every other one is dropped.

    >>> curve = Curve(most=4)
    >>> for step in range(1, 10):
    ...     curve.add(step, 10.0 * step)
    >>> curve.steps, curve.values
    ([1, 5, 9], [10.0, 50.0, 90.0])
    """

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.steps: list[int] = []
        self.values: list[float] = []
        self._every = 1
        self._seen = 0

    def add(self, step: int, value: float) -> None:
        """The next point; it is kept if its turn has come."""
        if self._seen % self._every == 0:
            self.steps.append(step)
            self.values.append(value)
            if len(self.steps) > self.most:
                self.steps, self.values = self.steps[::2], self.values[::2]
                self._every *= 2
        self._seen += 1
