"""A step of a run once more, for the page: its batch, what every layer did, and any array that went through it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.errors import ConfigError
from chainrule.files import plain
from chainrule.runs import RunFolder
from chainrule.runs.replay import Replay, replay
from chainrule.suggest import hinted
from chainrule.web.jobs import Tell
from chainrule.web.microscope.looks import packed

ROWS = 8  # of a batch that are shown
LONGEST = 600  # characters of each
MOST_VALUES = 200_000


class Replays:
    """Replays the steps that are asked for; the last one is kept, so that its arrays can be looked at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[tuple[Any, ...], Replay] | None = None

    def _of(self, folder: Path, step: int, tell: Tell) -> Replay:
        with self._lock:
            key = (folder, step, _stamp(folder))
            if self._last is None or self._last[0] != key:
                self._last = None  # two would take twice the memory
                tell("loading the nearest checkpoint", None)
                found = replay(folder, step, lambda done: tell(f"step {done:,} of {step:,}", None))
                self._last = (key, found)
            return self._last[1]

    def step(self, folder: Path, step: int, tell: Tell) -> dict[str, Any]:
        """The numbers of a step, its texts, and the names of its arrays."""
        found = self._of(folder, step, tell)
        report = found.report.to_dict()
        return {
            "step": found.step,
            "since": found.since,
            "same": found.same,
            "differs": found.differs,
            "lr": found.lr,
            "loss": plain(found.loss),
            "norm": plain(found.norm),
            "rows": len(found.texts),
            "texts": [{key: text[:LONGEST] for key, text in row.items()} for row in found.texts[:ROWS]],
            "layers": report["layers"],
            "parameters": report["parameters"],
            "findings": report["findings"],
            "arrays": {
                name: list(array.shape) for name, array in found.arrays().items() if array.dtype.kind == "f"
            },
            "python": "\n".join(
                [
                    "import chainrule as cr",
                    "",
                    f"found = cr.runs.replay({str(folder)!r}, {step})",
                    "print(found.loss, found.norm, found.same)",
                    "print(found.report.to_dict())",
                    'print(found.arrays().keys())  # such as "gradient/NAME", "activation/NAME"',
                    "",
                ]
            ),
        }

    def array(self, folder: Path, step: int, name: str, tell: Tell) -> dict[str, Any]:
        """The values of an array of the step, as rows and columns."""
        arrays = self._of(folder, step, tell).arrays()
        if name not in arrays:
            raise ConfigError(
                f"replay: no array {name[:80]!r} ({hinted('must be one of the step', name, arrays)})"
            )
        array = np.asarray(arrays[name], np.float64)
        rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
        rows = rows[: max(1, MOST_VALUES // rows.shape[1])]
        return {
            "shape": list(array.shape),
            "mean": plain(array.mean()),
            "std": plain(array.std()),
            "least": plain(array.min()),
            "most": plain(array.max()),
            "values": packed(rows),
            "cut": rows.size < array.size,
        }


def _stamp(folder: Path) -> Any:
    """What differs when a directory holds another run than before: when it began, and its first record."""
    files = RunFolder(folder)
    if not files.log.is_file():
        return None
    with files.log.open("rb") as log:
        return files.environment.exists() and files.environment.stat().st_mtime_ns, log.readline()
