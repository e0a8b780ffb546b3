"""Asking a training to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupt:
    """Ctrl-C or SIGTERM asks to stop after the step at hand; a second one stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupt:
        # Only the main thread may catch signals.
        self.catching = threading.current_thread() is threading.main_thread()
        if self.catching:
            self.before = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        if self.catching:
            for number, handler in self.before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
