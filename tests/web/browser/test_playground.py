"""The playground in a browser: tokens are those of the library, and a click branches off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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


def test_a_beam_tree(page: Any, fits: Any, runs: Path) -> None:
    page.goto("/playground?run=one&prompt=the &length=6&beam=3")
    page.wait_for_selector("[data-beam]")
    model, tokenizer = cr.load(runs / "one")
    ids = cr.text.prompt_ids(tokenizer, "the ")
    expected = cr.generate.beam_search(model, ids, width=3, n_best=3, max_new_tokens=6)
    scores = [float(each.get_attribute("data-score")) for each in page.locator("[data-score]").all()]
    assert scores == [found.score for found in expected]
    assert page.locator("g.beam").count() > 6 and page.locator("g.beam.on").count() == 6
    fits()


def test_a_translation_with_its_alignment(page: Any, fits: Any, runs: Path, families: str) -> None:
    page.goto(f"/playground?run={families}/seq2seq&prompt=the fox&length=8")
    page.wait_for_selector("[data-translation]")
    model, tokenizer = cr.load(runs / families / "seq2seq")
    marks = cr.text.Marks.of(tokenizer.special_ids, model.config.target_start)
    source = tokenizer.encode("the fox")
    (target,) = cr.generate.translate(model, source[None], start=marks.start, end=marks.end, max_new_tokens=8)
    assert page.inner_text("[data-translation]").strip() == tokenizer.decode(target).strip()
    seen = cr.inspect.view(model, (source, [marks.start, *target]))
    shown = [float(each.get_attribute("data-weight")) for each in page.locator("[data-weight]").all()]
    assert shown == pytest.approx(seen.attention(seen.blocks[-1], cross=True).mean(0)[0].tolist())
    fits()


def test_gaps_are_filled(page: Any, fits: Any, runs: Path, families: str) -> None:
    page.goto(f"/playground?run={families}/bert&prompt=the [MASK] fox")
    page.wait_for_selector("[data-filled]")
    (found,) = cr.generate.fill_masks(*cr.load(runs / families / "bert"), ["the [MASK] fox"], 8)
    assert page.inner_text("[data-filled]") == found.text
    shown = [float(each.get_attribute("data-p")) for each in page.locator("[data-gap] [data-p]").all()]
    assert shown == [guess.probability for guess in found.gaps[0]]
    fits()


def test_a_conversation(page: Any, fits: Any, runs: Path, families: str) -> None:
    page.goto(f"/playground?run={families}/talker&length=5&prompt=the")
    page.click("text=Chat")
    page.fill('[aria-label="Prompt"]', "the fox")
    page.click("text=Send")
    page.wait_for_selector("[data-answer]")
    messages = [{"role": "user", "content": "the fox"}]
    model, tokenizer = cr.load(runs / families / "talker")
    sampling = cr.generate.Sampling(max_new_tokens=5, temperature=0.8, min_p=0.0, seed=0)
    (request,) = cr.generate.answers(model, tokenizer, [(messages, sampling)])
    assert page.inner_text("[data-answer]").strip() == (request.text.strip() or "(nothing)")
    assert "messages=" in page.url
    page.wait_for_selector(".chance")
    assert page.locator("button.chance").count() == 0  # an answer is not branched off
    fits()
