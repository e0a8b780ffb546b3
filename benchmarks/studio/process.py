"""`chainrule studio` in a process of its own, and a browser that is asked for its memory."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.serving.process import Serving, running

VIEWPORT = {"width": 1440, "height": 900}


@contextmanager
def studio(folder: Path) -> Iterator[Serving]:
    """The Studio on a directory of runs, ready to answer."""
    command = [sys.executable, "-m", "chainrule.cli", "studio", str(folder), "--port", "0", "--no-open"]
    with running(command) as process:
        assert process.stdout
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        if not found:
            raise SystemExit("the Studio did not start")
        yield Serving(process, int(found[1]))


@contextmanager
def chromium() -> Iterator[Any]:
    """The system's chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page, and what the browser says of it."""

    def __init__(self, browser: Any, url: str) -> None:
        self.page = browser.new_page(viewport=VIEWPORT)
        self._devtools = self.page.context.new_cdp_session(self.page)
        self._devtools.send("Performance.enable")
        self.page.goto(url)

    def metrics(self) -> dict[str, float]:
        """Bytes of the JavaScript heap, nodes and listeners that are alive, after a collection of garbage."""
        self._devtools.send("HeapProfiler.collectGarbage")
        found = self._devtools.send("Performance.getMetrics")["metrics"]
        return {each["name"]: each["value"] for each in found}


def renderers_mb(browser: Any) -> float:
    """Memory of the processes that draw pages; what they share counts once."""
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return sum(_proportional_mb(each["id"]) for each in found if each["type"] == "renderer")


def _proportional_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
