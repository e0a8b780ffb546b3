"""The playground in a browser: tokens are those of the library, and a click branches off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chainrule as cr


def ids(page: Any) -> list[int]:
    return [int(each.get_attribute("data-id")) for each in page.locator(".wtoken").all()]


def test_a_text_is_written_and_branched(page: Any, fits: Any, runs: Path) -> None:
    page.goto("/playground?run=one&prompt=the+&length=6&seed=5")
    page.wait_for_selector(".wtoken")
    model, tokenizer = cr.load(runs / "one")
    begun = cr.text.prompt_ids(tokenizer, "the ").tolist()
    made = cr.generate.generate(model, begun, 6, temperature=0.8, top_p=1.0, seed=5).tolist()
    assert ids(page) == begun + made
    page.locator(".wtoken").nth(len(begun) + 1).click()
    other = page.locator("button.chance").nth(3)
    chosen = int(other.get_attribute("data-id"))
    other.click()
    page.wait_for_url("**ids=**")
    page.wait_for_selector("text=Back to the prompt")
    assert ids(page)[: len(begun) + 2] == [*begun, made[0], chosen]
    link, shown = page.url, ids(page)
    page.goto("/")
    page.goto(link)
    page.wait_for_selector(".wtoken")
    assert ids(page) == shown
    fits()
