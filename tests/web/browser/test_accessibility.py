"""Every view checked by axe-core, in both themes: no serious finding."""

from __future__ import annotations

from typing import Any

import pytest

PAGES = (
    "/", "/lessons", "/lessons/one-number", "/lessons/heads", "/lessons/figures/descent", "/calculus", "/calculus/ops",
    "/calculus/ops/softmax", "/tokens", "/tokens/merges", "/tokens/mask", "/ngrams", "/embeddings",
    "/embeddings/positions", "/runs", "/runs/one", "/runs/new", "/microscope?run=one", "/playground?run=one&length=8",
    "/diagnostics", "/alignment", "/scaling", "/scaling/plan",
)  # fmt: skip
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_no_serious_finding(page: Any, path: str, theme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    page.emulate_media(color_scheme=theme)
    page.goto(path)
    page.wait_for_selector("main h1")
    page.wait_for_selector("[aria-busy]", state="detached", timeout=60_000)
    page.wait_for_timeout(300)
    found = axe.Axe().run(page).response["violations"]
    said = [
        f"{each['id']} ({each['impact']}): {node['target']} {node['failureSummary'].splitlines()[-1].strip()}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"][:3]
    ]
    assert not said, "\n".join(said)
