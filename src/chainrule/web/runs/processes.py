"""Trainings that the Studio started: each is a process of `chainrule train`, which saves its run when it is stopped."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chainrule.errors import ConfigError
from chainrule.runs import RunFolder
from chainrule.runs.folder import free_folder
from chainrule.web.runs.plan import Plan, Refused

LINES = 60  # of its output that are kept
STOPPED = (0, 130)  # exit codes of a training that ended, or saved itself when it was told to
ERROR = "error:"
FLAG = re.compile(r"(?<!\S)--([a-z][a-z-]*[a-z])")
PATIENCE = 20.0  # seconds in which a training saves itself when the Studio ends


@dataclass
class Training:
    """A process, and the last lines it printed."""

    process: subprocess.Popen[str]
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def state(self) -> dict[str, Any]:
        code = self.process.poll()
        failed = code not in (None, *STOPPED)
        return {
            "alive": code is None,
            "problem": self._problem(code) if failed else "",
            "lines": [*self.lines],
        }

    def _problem(self, code: int | None) -> str:
        """Why it failed, in the words of the form: what it said last as an error, without the dashes of options."""
        said = [*self.lines]
        found = [line.partition(ERROR)[2].strip() for line in said if ERROR in line]
        text = found[-1] if found else ": ".join([f"it ended with exit code {code}", *said[-1:]])
        return FLAG.sub(lambda found: found.group(1).replace("-", "_"), text)


class Trainings:
    """All trainings of this Studio, by the name of their run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Training] = {}
        self._lock = threading.Lock()

    def start(self, plan: Plan) -> str:
        """Start a training; the name of its run, a free one if none was asked for."""
        with self._lock:
            self._check_name(plan.name)
            path = self.folder / plan.name if plan.name else self._free(plan.family)
            self._begin(path.name, plan.words(path))
            return path.name

    def check_name(self, name: str) -> None:
        """Refuse a name that has been used, also by a training that failed: its output would be lost."""
        with self._lock:
            self._check_name(name)

    def _check_name(self, name: str) -> None:
        there = (self.folder / name).exists()
        if name and (there or name in self._used()):
            what = "is being trained" if self._alive(name) else "is there already" if there else "has failed"
            rule = f"choose another name, such as {self._free(name).name}, or leave it empty"
            raise Refused(f"run {name}: {what} ({rule})", "name")

    def resume(self, name: str, family: str) -> None:
        """Go on with a run from its newest checkpoint."""
        with self._lock:
            path = self.folder / name
            if self._alive(name) or RunFolder(path).busy:
                raise ConfigError(f"run {name}: is being trained already")
            self._begin(name, ["train", family, "--resume", str(path)])

    def stop(self, name: str) -> None:
        """Let a training save itself and end, as Ctrl-C does."""
        training = self._known.get(name)
        if training is None or training.process.poll() is not None:
            raise ConfigError(
                f"run {name}: was not started here, or has ended (stop it where it was started)"
            )
        training.process.send_signal(signal.SIGINT)

    def state(self, name: str) -> dict[str, Any] | None:
        """Of the process of a run; None if it was not started here."""
        training = self._known.get(name)
        return training.state if training else None

    def waiting(self) -> list[str]:
        """Runs whose process lives and that have no directory yet."""
        return [
            name
            for name in self._known
            if self._alive(name) and not RunFolder(self.folder / name).log.exists()
        ]

    def close(self) -> None:
        """Stop all of them; they save themselves."""
        alive = [each.process for each in self._known.values() if each.process.poll() is None]
        for process in alive:
            process.send_signal(signal.SIGINT)
        for process in alive:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()

    def _alive(self, name: str) -> bool:
        return name in self._known and self._known[name].process.poll() is None

    def _free(self, name: str) -> Path:
        """The first of name, name-2, ... that no run here has or had, with or without a directory."""
        return free_folder(self.folder / name, besides=self._used())

    def _used(self) -> set[str]:
        """Names of trainings that live, or failed and have something to say."""
        return {name for name, each in self._known.items() if each.state["alive"] or each.state["problem"]}

    def _begin(self, name: str, words: list[str]) -> None:
        command = [sys.executable, "-m", "chainrule.cli", *words]
        # In a session of its own: Ctrl-C in the terminal is for the Studio, which then stops its trainings itself.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._known[name] = Training(process)
        threading.Thread(target=self._known[name].listen, daemon=True).start()
