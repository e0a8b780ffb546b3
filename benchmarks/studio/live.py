"""Curves of a run that makes 50 steps a second, for an hour: neither the page nor the server grows."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.harness import progress
from benchmarks.serving.part import Part
from benchmarks.serving.process import Serving
from benchmarks.studio.feed import Feed, recorded
from benchmarks.studio.process import Tab, chromium, renderers_mb, studio

RATE = 50.0  # steps per second
SHOWN = 5  # every fifth minute stands in the table
FLAT_MB = 8.0  # that memory may grow after the first tenth
BEHIND = 5.0  # seconds that a page may be behind its run
HEADER = [
    "minute", "steps", "behind, s", "server, MB", "server, CPU s", "heap, MB", "nodes", "listeners",
    "heap of the list, MB", "renderers, MB",
]  # fmt: skip
Row = list[float]


def live(minutes: float) -> Part:
    """The view of the run and the list of runs are open the whole time; garbage is collected before each look."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        folder = Path(made) / "runs"
        feed = Feed(folder / "endless", recorded(folder / "real"), RATE)
        with feed.writing(), studio(folder) as server:
            began = time.monotonic()
            run, listed = (
                Tab(browser, f"http://127.0.0.1:{server.port}/runs{below}") for below in ("/endless", "")
            )
            run.page.wait_for_selector("[data-fact=step]")
            while (spent := (time.monotonic() - began) / 60) < minutes:
                run.page.wait_for_timeout(1000 * min(60, 60 * (minutes - spent)))
                now = (time.monotonic() - began) / 60
                rows.append([now, *look(feed, server, run, listed), renderers_mb(browser)])
                progress("  ".join(f"{value:,.1f}" for value in rows[-1]))
    return told(rows, minutes)


def look(feed: Feed, server: Serving, run: Tab, listed: Tab) -> Row:
    shown = float(run.page.get_attribute("[data-fact=step]", "data-value"))
    behind = (feed.step - shown) / RATE
    page, other = run.metrics(), listed.metrics()
    sizes = [page["JSHeapUsedSize"] / 2**20, page["Nodes"], page["JSEventListeners"]]
    return [feed.step, behind, server.memory_mb, server.cpu_seconds, *sizes, other["JSHeapUsedSize"] / 2**20]


def told(rows: list[Row], minutes: float) -> Part:
    """The table, and what must hold after the first tenth, in which caches fill."""
    part = Part(f"Live curves, {RATE:g} steps/s for {minutes:g} minutes", HEADER)
    digits = (0, 0, 1, 0, 0, 1, 0, 0, 1, 0)
    part.rows = [
        [f"{value:,.{n}f}" for value, n in zip(row, digits, strict=True)]
        for row in [rows[0], *rows[SHOWN - 1 :: SHOWN]]
    ]
    settled = rows[len(rows) // 10]
    for name in ("server, MB", "heap, MB", "heap of the list, MB"):
        at = HEADER.index(name)
        found = f"{settled[at]:.1f} -> {rows[-1][at]:.1f}"
        part.check(f"{name}: grows by at most {FLAT_MB:g}", found, rows[-1][at] - settled[at] <= FLAT_MB)
    steps = rows[-1][1]
    part.check("all steps were written", f"{steps:,.0f}", steps >= 0.99 * RATE * 60 * minutes)
    slowest = max(row[2] for row in rows)
    part.check(
        f"the page is at most {BEHIND:g} s behind", f"{rows[-1][2]:.1f} s at the end", rows[-1][2] <= BEHIND
    )
    part.notes.append(
        f"A record of a step, evaluation, sample, look inside or finding is one line of `log.jsonl`; the page was at "
        f"most {slowest:.1f} s behind when it was looked at. Memory is resident, heaps are after a collection."
    )
    return part
