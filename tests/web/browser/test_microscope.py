"""The microscope in a browser: what is shown is what the library computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainrule as cr

TEXT = "the quick fox"


def test_predictions_attention_lens_and_heads(page: Any, fits: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&at=3")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / "one")
    ids = cr.text.prompt_ids(tokenizer, TEXT)
    seen = cr.inspect.view(model, ids)
    losses = [each.get_attribute("data-loss") for each in page.locator('[aria-label="Tokens"] .token').all()]
    assert losses[0] == "null" and [float(loss) for loss in losses[1:]] == pytest.approx(
        seen.loss[:-1].tolist()
    )
    shown = [
        (int(e.get_attribute("data-id")), float(e.get_attribute("data-p")))
        for e in page.locator(".chance").all()
    ]
    assert [id for id, _ in shown] == [id for id, _ in seen.top(8)[3]]
    assert [p for _, p in shown] == pytest.approx([p for _, p in seen.top(8)[3]])
    weights = [float(e.get_attribute("data-weight")) for e in page.locator("[data-weight]").all()]
    assert weights == pytest.approx(seen.attention("h.0")[0, 3].tolist())
    cells = page.locator('[data-stream="h.0"] [data-id]').all()
    lens = cr.inspect.logit_lens(model, ids, top=1)
    assert [int(cell.get_attribute("data-id")) for cell in cells] == [top[0][0] for top in lens.top[-1]]
    best = page.locator('[data-kind="previous"] [data-best]')
    block, head, score = cr.inspect.head_scores(model).best("previous")
    assert best.get_attribute("data-best") == f"{block}:{head}"
    assert float(best.get_attribute("data-value")) == score
    assert int(page.locator("[data-parameters]").get_attribute("data-parameters")) == model.count()
    fits()


def test_tokens_are_chosen_by_keys_and_heads_switched_off(page: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&at=0")
    page.wait_for_selector("[data-parameters]")
    page.locator('[aria-label="Tokens"]').focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**at=1**")
    page.click('[aria-label="h.0 head 1"]')
    page.wait_for_selector("h3 >> text=h.0, head 1")
    page.click("text=Switch this head off")
    page.wait_for_selector("text=off: h.0:1")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / "one")
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT), cr.inspect.ZeroHeads("h.0", 1))
    last = page.locator('[aria-label="Tokens"] .token').last.get_attribute("data-loss")
    assert float(last) == pytest.approx(seen.loss[-2])
    assert "off=h.0%3A1" in page.url


def test_the_slider_goes_to_another_checkpoint(page: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    page.locator('[aria-label="Checkpoint"]').focus()
    page.keyboard.press("Home")
    page.wait_for_url("**step=**")
    page.wait_for_selector("[data-parameters]")
    page.wait_for_selector("[aria-busy]", state="detached")
    first = cr.runs.RunFolder(runs / "one").saved()[0]
    model, tokenizer = cr.load(first)
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT))
    page.wait_for_timeout(300)
    last = page.locator('[aria-label="Tokens"] .token').last.get_attribute("data-loss")
    assert float(last) == pytest.approx(seen.loss[-2])
