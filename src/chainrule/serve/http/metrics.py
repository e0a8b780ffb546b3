"""/metrics: what the server has done, as Prometheus reads it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from chainrule.serve.models import Models

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Histogram:
    """How many durations were at most each of `SECONDS`."""

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    def lines(self, name: str) -> Iterator[str]:
        below = 0
        for edge, count in zip((*map(str, SECONDS), "+Inf"), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{le="{edge}"}} {below}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {below}"


class Metrics:
    """Requests by path and status, and durations; the models count their tokens themselves."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.live = 0
        """Requests that are being answered."""
        self._requests: Counter[tuple[str, int]] = Counter()
        self.durations = {
            "chainrule_request_seconds": ("Of whole requests.", Histogram()),
            "chainrule_time_to_first_token_seconds": ("From a request to its first token.", Histogram()),
            "chainrule_time_between_tokens_seconds": ("Between two tokens of a text.", Histogram()),
        }
        self._lock = threading.Lock()

    def count(self, path: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[path, status] += 1
        self.durations["chainrule_request_seconds"][1].add(seconds)

    def first_token(self, seconds: float) -> None:
        self.durations["chainrule_time_to_first_token_seconds"][1].add(seconds)

    def next_token(self, seconds: float) -> None:
        self.durations["chainrule_time_between_tokens_seconds"][1].add(seconds)

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from _head("chainrule_requests_total", "counter", "Answered requests.")
        for (path, status), count in sorted(self._requests.items()):
            yield f'chainrule_requests_total{{path="{path}",status="{status}"}} {count}'
        yield from _head("chainrule_live_requests", "gauge", "Requests that are being answered.")
        yield f"chainrule_live_requests {self.live}"
        for name, (about, histogram) in self.durations.items():
            yield from _head(name, "histogram", about)
            yield from histogram.lines(name)
        for name, about in {"running": "Texts at work.", "waiting": "Texts in the queue."}.items():
            yield from _head(f"chainrule_{name}", "gauge", about)
            for served in self.models:
                yield f'chainrule_{name}{{model="{served.name}"}} {getattr(served.station, name)}'
        writers = {served.name: served.writer for served in self.models if served.writer}
        yield from _head(
            "chainrule_cache_pages", "gauge", "Pages of KV caches in use, also by texts that have ended."
        )
        for name, writer in writers.items():
            yield f'chainrule_cache_pages{{model="{name}"}} {writer.pages}'
        for field, about in COUNTED.items():
            yield from _head(f"chainrule_{field}_total", "counter", about)
            for name, writer in writers.items():
                yield f'chainrule_{field}_total{{model="{name}"}} {getattr(writer.counters, field)}'


COUNTED = {
    "tokens": "Tokens that were written.",
    "prompt_tokens": "Tokens of prompts that were read.",
    "reused_tokens": "Tokens of prompts that a cache held already.",
    "steps": "Passes over the weights.",
    "drafted": "Tokens that were guessed ahead.",
    "accepted": "Guesses that were right.",
}


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
