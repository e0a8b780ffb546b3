"""Results that take long and are asked for again: each is computed once, also when two pages ask at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from chainrule.web.jobs import Tell

Result = TypeVar("Result")
PATIENCE = 0.2  # seconds between two signs of life of a job that waits for another one


class Kept(Generic[Result]):
    """The last results by what was asked for, `size` of them at most."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._found: OrderedDict[Hashable, Result] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def of(self, key: Hashable, make: Callable[[], Result], tell: Tell) -> Result:
        """What is kept, or what `make()` returns; who waits for another one's result can be canceled meanwhile."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
            mine = self._making.setdefault(key, threading.Lock())
        while not mine.acquire(timeout=PATIENCE):
            tell("waiting for the same work", None)
        try:
            with self._lock:
                if key in self._found:  # the other one made it
                    return self._found[key]
            made = make()
            with self._lock:
                self._found[key] = made
                while len(self._found) > self.size:
                    self._found.popitem(last=False)
            return made
        finally:
            with self._lock:
                self._making.pop(key, None)
            mine.release()
