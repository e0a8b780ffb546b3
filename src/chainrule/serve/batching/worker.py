"""The thread that works for all models: a step for each that has something to do, in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol


class Station(Protocol):
    """A model at work."""

    @property
    def busy(self) -> bool:
        """There is something to do."""

    def step(self) -> None:
        """Do a little of it."""

    def fail(self, error: Exception) -> None:
        """All that is under way ends with this error."""


class Worker:
    """Runs stations until it is closed; between steps it sleeps if none is busy."""

    def __init__(self, stations: Sequence[Station], report: Callable[[Exception], None]) -> None:
        self.stations = stations
        self.report = report
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="chainrule-serve", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """It works, or waits for work."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def close(self) -> None:
        """Stop after the present step; what is still under way ends with an error."""
        self._closed = True
        self._wake.set()
        self._thread.join()
        for station in self.stations:
            station.fail(ConnectionAbortedError("the server is shutting down"))

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            worked = True
            while worked and not self._closed:
                worked = any(tuple(self._step(station) for station in self.stations))

    def _step(self, station: Station) -> bool:
        """One step of a station, if it is busy. What it does not expect ends its jobs, not the thread."""
        if not station.busy:
            return False
        try:
            station.step()
        except Exception as error:
            station.fail(error)
            with suppress(OSError):  # the log may be gone; the thread goes on
                self.report(error)
        return True
