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
EDITS = '[{"kind":"off","block":"h.0","head":1}]'
FAMILIES = (
    "/microscope?run=all/seq2seq&text=the fox", "/microscope?run=all/lstm", "/microscope?run=all/ngram",
    f"/microscope?run=one&edits={EDITS}&against=two", "/playground?run=one&length=8&beam=3",
    "/playground?run=all/seq2seq&beam=2", "/playground?run=all/bert", "/runs/one?replay=3",
    "/microscope?run=flat/bag&text=the fox", "/microscope?run=flat/words&text=the fox", "/runs/new?lr=-1&seed=x",
)  # fmt: skip
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize("path", [*PAGES, *FAMILIES])
def test_no_serious_finding(page: Any, families: str, flat: Any, path: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    page.goto(path)
    page.wait_for_selector("main h1")
    page.wait_for_selector("[aria-busy]", state="detached", timeout=60_000)
    said = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_timeout(300)  # colors change over a moment
        said += [
            f"{theme}: {each['id']} ({each['impact']}): {node['target']} {node['failureSummary'].splitlines()[-1]}"
            for each in axe.Axe().run(page).response["violations"]
            if each["impact"] in SERIOUS
            for node in each["nodes"][:3]
        ]
    assert not said, "\n".join(said)
