"""Every view opened by a browser that has never seen it: when it can be used, when it is whole, and what it loads."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tools.screenshots import TEXT, VIEWS

from benchmarks.harness import progress
from benchmarks.serving.part import Part
from benchmarks.studio.feed import recorded
from benchmarks.studio.process import VIEWPORT, chromium, studio

ROUNDS = 3
RUNS = ("pydoc", "too-fast", "lines")  # as the views are called with; here all are one small language model
OTHERS = ("bag", "words")  # views of other models
SOON = 1.0  # seconds until a view can be used
LARGEST = 500.0  # kB of the page itself, without what the view computes
BUSY, PAUSE = "[aria-busy]", 300  # what computes, and milliseconds until it is looked for again
HEADER = ["view", "usable, s", "whole, s", "page, kB", "files", "answers, kB"]


class Visit(NamedTuple):
    """One opening of a view, in seconds and bytes."""

    usable: float
    whole: float
    page: int
    files: int
    answers: int


def pages() -> Part:
    seen: dict[str, Visit] = {}
    before = os.getloadavg()[0]
    part = Part(f"Views, the median of {ROUNDS} visits with an empty cache", HEADER)
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        folder = Path(made) / "runs"
        recorded(folder / RUNS[0])
        for name in RUNS[1:]:
            shutil.copytree(folder / RUNS[0], folder / name)
        with studio(folder) as server:
            address = f"http://127.0.0.1:{server.port}"
            opened(browser, f"{address}/")  # the server has imported what it needs for a page
            for name, path in VIEWS.items():
                if name in OTHERS:
                    continue
                progress(name)
                url = address + path.format(text=TEXT)
                visits = [opened(browser, url) for _ in range(ROUNDS)]
                seen[name] = Visit(*(statistics.median(each) for each in zip(*visits, strict=True)))
                add(part, name, seen[name])
    slow, large = (max(seen, key=lambda name: seen[name][i]) for i in (0, 2))
    part.check(
        f"every view is usable within {SOON:g} s",
        f"{seen[slow].usable:.2f} s: {slow}",
        seen[slow].usable <= SOON,
    )
    part.check(
        f"no page has more than {LARGEST:g} kB",
        f"{seen[large].page / 1000:.0f} kB: {large}",
        seen[large].page <= 1000 * LARGEST,
    )
    part.notes.append(
        "Usable: the heading of the view is drawn, and its links and fields answer. Whole: nothing is being computed "
        "for it any more; the first visit to a view that computes includes that. Page: HTML, styles and modules, "
        "uncompressed, from the package; answers: numbers for the view. "
        f"The load of {os.cpu_count()} cores was {before:.1f} before and {os.getloadavg()[0]:.1f} after."
    )
    return part


def add(part: Part, name: str, seen: Visit) -> None:
    kilobytes = seen.page / 1000
    part.rows.append(
        [name, f"{seen.usable:.2f}", f"{seen.whole:.2f}", f"{kilobytes:,.0f}", f"{seen.files:.0f}",
         f"{seen.answers / 1000:,.1f}"]
    )  # fmt: skip


def opened(browser: Any, url: str) -> Visit:
    """A visit with an empty cache."""
    context = browser.new_context(viewport=VIEWPORT)
    page, sizes = context.new_page(), {"page": 0, "files": 0, "answers": 0}

    def count(request: Any) -> None:
        size = request.sizes()["responseBodySize"]
        sizes["answers" if "/api/" in request.url else "page"] += size
        sizes["files"] += "/api/" not in request.url

    page.on("requestfinished", count)
    page.goto(url, wait_until="commit")
    page.wait_for_selector("main h1", timeout=60_000)
    usable = now(page)
    whole = settled(page)
    page.wait_for_timeout(PAUSE)  # a view may ask once more
    if page.query_selector(BUSY):
        whole = settled(page)
    context.close()
    return Visit(usable, whole, **sizes)


def settled(page: Any) -> float:
    """When nothing is being computed."""
    page.wait_for_selector(BUSY, state="detached", timeout=60_000)
    return now(page)


def now(page: Any) -> float:
    """Seconds since the address was entered, by the clock of the page."""
    return float(page.evaluate("performance.now()")) / 1000
