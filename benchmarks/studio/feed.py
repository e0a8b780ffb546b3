"""A run that goes on and on: the records of a real training, written again at a rate by the log of the project."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rich.console import Console

import chainrule as cr
from chainrule.runs import RunFolder
from chainrule.train.log import Log, read

STEPS = 200  # of the training whose records are repeated
LOGGED = ("finding", "watch", "sample")


def recorded(folder: Path) -> list[dict[str, Any]]:
    """The records of a small training with evaluations, samples, looks inside and what the doctor says."""
    config = cr.train.TrainConfig(
        max_steps=STEPS,
        batch_size=4,
        eval_every=50,
        sample_every=50,
        watch_every=25,
        warmup=5,
        eval_windows=4,
    )
    run = cr.runs.Run.new(folder, "pydoc", config, n_layer=2, n_head=2, n_embd=32, block_size=32)
    run.train(Console(quiet=True))
    return read(RunFolder(folder).log)


class Feed:
    """Writes steps at a rate, in a thread; after a pause it makes up for it, so that an hour has all its steps."""

    def __init__(self, folder: Path, records: list[dict[str, Any]], rate: float) -> None:
        self.folder, self.records, self.rate = folder, records, rate
        self.step = 0
        self._end = Event()

    @contextmanager
    def writing(self) -> Iterator[Feed]:
        files = RunFolder(self.folder)
        files.make()
        thread = Thread(target=self._write, args=(files,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            thread.join()

    def _write(self, files: RunFolder) -> None:
        with (
            open(os.devnull, "w") as nowhere,
            files.at_work(),
            Log(files.log, per_step=128, parameters=10_000, console=Console(file=nowhere)) as log,
        ):
            began = time.monotonic()
            for record in cycle(self.records):
                if self._end.wait(max(0.0, began + self.step / self.rate - time.monotonic())):
                    return
                self._log(log, record, time.monotonic() - began)

    def _log(self, log: Log, record: dict[str, Any], seconds: float) -> None:
        if "loss" in record:
            self.step += 1
            log.step(
                self.step, record["loss"], lr=record["lr"], norm=record["norm"], seconds=seconds, left=0.0
            )
        elif "validation" in record:
            log.evaluation(self.step, record["validation"], seconds=seconds)
        else:
            log.note(self.step, {name: record[name] for name in LOGGED if name in record})
