"""Views to keep, in a browser: one file that opens offline with the same numbers, and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainrule as cr

TEXT = "the quick fox"


@pytest.fixture
def offline(browser: Any, tmp_path: Path) -> Any:
    """Open a saved file without a network; its console stays empty."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    wrong: list[str] = []

    def show(download: Any) -> Any:
        path = tmp_path / download.suggested_filename
        download.save_as(path)
        found = context.new_page()
        found.on(
            "console", lambda message: message.type in ("error", "warning") and wrong.append(message.text)
        )
        found.on("pageerror", lambda error: wrong.append(str(error)))
        found.set_default_timeout(15_000)
        found.goto(path.as_uri())
        return found

    yield show
    context.close()
    assert wrong == []


def saved(page: Any) -> Any:
    with page.expect_download() as waiting:
        page.click("text=Save as a file")
    return waiting.value


def test_a_microscope_in_one_file(page: Any, offline: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&at=3")
    page.wait_for_selector("[data-parameters]")
    kept = offline(saved(page))
    kept.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / "one")
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT))
    kept.click('[aria-label="h.0 head 1"]')  # all maps are inside
    kept.wait_for_selector("h3 >> text=h.0, head 1")
    kept.locator('[aria-label="Tokens"] .token').nth(5).click()
    weights = [float(each.get_attribute("data-weight")) for each in kept.locator("[data-weight]").all()]
    assert weights == pytest.approx(seen.attention("h.0")[1, 5].tolist())
    assert (
        kept.locator("textarea").first.is_disabled()
        and not kept.locator("text=Switch this head off").is_visible()
    )
    assert kept.locator(".error").count() == 0


def test_a_playground_and_a_graph_in_one_file(page: Any, offline: Any) -> None:
    page.goto("/playground?run=one&prompt=the &length=5&seed=5")
    page.wait_for_selector(".wtoken")
    shown = page.locator(".written").inner_text()
    kept = offline(saved(page))
    kept.wait_for_selector(".wtoken")
    kept.locator(".wtoken").nth(5).click()
    assert kept.locator(".written").inner_text() == shown and kept.locator(".error").count() == 0
    page.goto("/calculus?e=L = (w * x) ** 2&w=2&x=3")
    page.wait_for_selector('[data-variable="w"]')
    kept = offline(saved(page))
    kept.click("text=Start")
    kept.click("text=Step")
    kept.wait_for_selector("text=forward 1 of")


def test_a_run_in_one_file(page: Any, offline: Any, runs: Path) -> None:
    page.goto("/runs/one?replay=5")
    page.wait_for_selector("text=the bits of the log")
    kept = offline(saved(page))
    kept.wait_for_selector("text=the bits of the log")
    history = cr.runs.History.of(runs / "one")
    shown = kept.locator('[data-fact="loss"]').get_attribute("data-value")
    assert float(shown) == history.series("loss")[-1][1]
    assert kept.locator(".chart svg").count() == 5


def test_pictures(page: Any, tmp_path: Path) -> None:
    page.goto("/runs/one")
    page.wait_for_selector(".chart svg")
    with page.expect_download() as waiting:
        page.click('[aria-label="Save the picture of loss"]')
    waiting.value.save_as(tmp_path / "loss.svg")
    drawn = (tmp_path / "loss.svg").read_text()
    assert (
        waiting.value.suggested_filename == "loss.svg" and drawn.startswith("<svg") and "var(--" not in drawn
    )
    page.goto(f"/microscope?run=one&text={TEXT}")
    page.wait_for_selector("canvas.map")
    with page.expect_download() as waiting:
        page.click("text=Save picture >> nth=0")
    waiting.value.save_as(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "path", ["/calculus/ops/softmax", "/lessons/one-number", "/runs/compare?run=one&run=two"]
)
def test_other_views_in_one_file(page: Any, offline: Any, path: str) -> None:
    page.goto(path)
    page.wait_for_selector("main h1")
    page.wait_for_selector("[aria-busy]", state="detached")
    title = page.locator("main h1").first.inner_text()
    kept = offline(saved(page))
    kept.wait_for_selector("main h1")
    assert kept.locator("main h1").first.inner_text() == title and kept.locator(".error").count() == 0
