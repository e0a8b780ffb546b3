"""Asking a training to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interrupt:
    """Ctrl-C, SIGTERM, or a terminal that is closed asks to stop after the step at hand; a second one stops at once.

    A signal that this process was told to ignore, as `nohup` does with SIGHUP, is ignored here too.
    """

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupt:
        # Only the main thread may catch signals.
        self.catching = threading.current_thread() is threading.main_thread()
        if self.catching:
            heard = [s for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]
            self.before = {s: signal.signal(s, self._ask) for s in heard}
        return self

    def __exit__(self, *error: object) -> None:
        if self.catching:
            for number, handler in self.before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
