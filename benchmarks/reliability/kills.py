"""Runs killed at random moments by SIGKILL, and resumed until they are done: the same bits as a run that was not."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.runs.survivors import TRAINERS, new, outcome, resume, write_data

from benchmarks.harness import progress
from benchmarks.reliability.tries import Ended, Tally


def campaign(count: int, seed: int, folder: Path) -> Tally:
    """At least `count` kills, over all kinds of training in turn."""
    tally, draw = Tally("kills of a training, resumed to the end"), random.Random(seed)
    write_data(folder)
    while tally.tries < count:
        for trainer in TRAINERS:
            if tally.tries < count:
                _survives(trainer, folder, draw, tally)
        progress(f"{tally.tries} kills")
    return tally


def _survives(trainer: str, folder: Path, draw: random.Random, tally: Tally) -> None:
    """A run that is killed over and over, and one that is not: they must end alike."""
    whole, killed = f"{trainer}-whole", f"{trainer}-killed"
    for name in (whole, killed):
        shutil.rmtree(folder / name, ignore_errors=True)
    began = time.monotonic()
    code = _ended(_fork(lambda: new(folder, trainer, whole).train()))
    takes = time.monotonic() - began
    kills = 0
    while code == 0 and kills < 8:
        child = _fork(lambda: _begin(folder, trainer, killed))
        time.sleep(draw.random() * takes)
        os.kill(child, signal.SIGKILL)
        if _ended(child) != -signal.SIGKILL:
            break
        kills += 1
        tally.add(trainer, Ended(0, "", "", 0))
    code = code or _ended(_fork(lambda: _begin(folder, trainer, killed)))
    if code:
        tally.problems.append(f"{trainer}: ended with {code} after {kills} kills")
    elif outcome(folder / killed) != outcome(folder / whole):
        tally.problems.append(f"{trainer}: other bits after {kills} kills")


def _begin(folder: Path, trainer: str, name: str) -> None:
    """Resume a run, or begin it if it has no checkpoint yet."""
    run = folder / name
    if not any((run / "checkpoints").glob("step_*")):
        shutil.rmtree(run, ignore_errors=True)
        new(folder, trainer, name).train()
    else:
        resume(run, trainer).train()


def _fork(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
