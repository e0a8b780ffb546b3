"""The runs of a directory: a line for each, one as a whole, and several side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from chainrule.errors import ConfigError
from chainrule.models import registry
from chainrule.runs import History, RunFolder
from chainrule.runs.records.compare import different, facts
from chainrule.runs.records.follow import Digest
from chainrule.web.runs.findings import Findings
from chainrule.web.runs.live import Live

# Families whose models predict tokens: the next ones, those that are missing, or those of a target.
READERS = (
    "gpt", "llama", "neox", "ngram", "mlp", "lstm", "gru", "rnn", "bert", "seq2seq", "t5",
)  # fmt: skip

# Those that say something else of a text: labels, tags, a vector, a reward, vectors of its words.
OTHERS = (
    "bert-classifier", "bert-tagger", "bert-embedder", "bert-body", "bow-classifier", *registry.REWARDS,
    *registry.WORD_VECTORS,
)  # fmt: skip


class Told(Digest):
    """With what the doctor said."""

    def clear(self) -> None:
        super().clear()
        self.findings = Findings()

    def add(self, record: dict[str, Any]) -> None:
        super().add(record)
        self.findings.add(record)


class Runs:
    """Every run below a directory. What a checkpoint tells is read again only when there is a newer one."""

    def __init__(self, folder: Path, deep: bool = True) -> None:
        self.folder = folder
        self.deep = deep
        self._known: dict[Path, tuple[Any, History]] = {}
        self._digests: dict[Path, Told] = {}
        self._lock = Lock()  # of the digests: pages ask side by side

    def path(self, name: str) -> Path:
        """The directory of a run, which must be inside ours."""
        path = self.folder / name
        inside = (
            path.resolve().is_relative_to(self.folder.resolve()) and path.resolve() != self.folder.resolve()
        )
        if not name or not inside:
            raise ConfigError(f"run {name[:80]!r}: not in {self.folder} (must be the name of a run there)")
        return path

    def history(self, name: str) -> History:
        """The run of a name, as it is now; of its log, which may be long, the few records of a `Digest`.

        What it says of itself is true, but its `series` are no curves: `Live` has those.
        """
        path = self.path(name)
        files = RunFolder(path)
        if not files.log.is_file():
            raise ConfigError(f"run {name[:80]!r}: not in {self.folder} (see the list of runs)")
        saved = files.saved()
        stamp = (
            saved[-1].name if saved else "",
            files.busy,
            files.environment.exists() and files.environment.stat().st_mtime_ns,
        )
        with self._lock:
            records = self._digests.setdefault(path, Told(files.log)).records()
        if path not in self._known or self._known[path][0] != stamp:
            self._known[path] = (stamp, History.of(path, records))
        return replace(self._known[path][1], records=records)

    def files(self, pattern: str) -> Iterator[Path]:
        """Files below the directory; unless it is `deep`, only in it and in the directories in it."""
        if self.deep:
            return self.folder.rglob(pattern)
        return chain(self.folder.glob(pattern), self.folder.glob(f"*/{pattern}"))

    def names(self) -> list[str]:
        """All runs, the one that was written to last first."""
        if not self.folder.is_dir():
            return []
        logs = [
            log for log in self.files(RunFolder(self.folder).log.name) if not log.parent.name.startswith(".")
        ]
        ordered = sorted(logs, key=lambda log: -log.stat().st_mtime)
        return [
            log.parent.relative_to(self.folder).as_posix() for log in ordered if log.parent != self.folder
        ]

    def listed(self) -> list[dict[str, Any]]:
        """A line for each run."""
        return [self.line(name) for name in self.names()]

    def line(self, name: str) -> dict[str, Any]:
        history = self.history(name)
        with self._lock:
            found = self._digests[history.folder].findings.problems
        return {"name": name, "problem": history.problem, "findings": found, **facts(history)}

    def whole(self, name: str) -> dict[str, Any]:
        """What does not change while it trains, and the program that reads its curves."""
        history = self.history(name)
        saved = bool(RunFolder(history.folder).saved())
        return {
            **self.line(name),
            "settings": _plain(history.settings),
            "machine": _plain(history.machine),
            "reads": history.family in READERS and saved,
            "inside": history.family in (*READERS, *OTHERS) and saved,
            "python": _program([history.folder]),
        }

    def compared(self, names: list[str]) -> dict[str, Any]:
        """Curves, results and different settings of several runs."""
        if len(set(names)) < 2:
            raise ConfigError("compare: must be two different runs or more")
        found = [self.history(name) for name in names]
        return {
            "runs": [
                {"name": name, **facts(history), **_curves(history.folder)}
                for name, history in zip(names, found, strict=True)
            ],
            "settings": _plain(different([history.settings for history in found])),
            "machine": _plain(different([history.machine for history in found])),
            "python": _program([history.folder for history in found]),
        }


def _curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Of any number of steps as many points as can be seen."""
    live = Live(folder)
    live.update()
    found = {name: live.curves[name] for name in ("loss", "validation")}
    return {name: list(zip(curve.steps, curve.values, strict=True)) for name, curve in found.items()}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, list | int | float | str | None) else str(value)
        for key, value in values.items()
    }


def _program(folders: list[Path]) -> str:
    paths = ", ".join(repr(str(folder)) for folder in folders)
    return "\n".join(
        [
            "import chainrule as cr",
            "",
            f"for folder in [{paths}]:",
            "    history = cr.runs.History.of(folder)",
            '    print(folder, history.state, history.best, history.series("validation"))',
            "",
        ]
    )
