"""Tokens in a browser: the pieces on the page are the library's."""

from __future__ import annotations

from typing import Any

import chainrule as cr
from chainrule.text.textbook_bpe import trace


def test_pieces(page: Any, fits: Any) -> None:
    page.goto("/tokens")
    page.fill("textarea", "Numbers: 3.14 <b>bold</b>")
    page.wait_for_url("**bold**")
    page.wait_for_selector(
        '[data-tokenizer="Byte pairs"] [data-piece="Num"], [data-tokenizer="Byte pairs"] [data-piece="N"]'
    )
    ids = [
        int(each.get_attribute("data-id"))
        for each in page.locator('[data-tokenizer="Byte pairs"] .piece').all()
    ]
    tokenizer = cr.text.BPETokenizer.train(cr.data.load("pydoc").text, 1000)
    assert ids == tokenizer.encode("Numbers: 3.14 <b>bold</b>").tolist()
    assert page.locator("main b >> text=bold").count() == 0  # text is text
    fits()


def test_merges_are_stepped(page: Any, fits: Any) -> None:
    page.goto("/tokens/merges?text=low+lower+lowest")
    page.wait_for_selector(".word")
    page.click("text=Merge →")
    page.locator('[aria-label^="Merges."]').focus()
    page.keyboard.press("ArrowRight")
    step = list(trace(["low", "lower", "lowest"], 2))[-1]
    words = [
        [each.get_attribute("data-piece") for each in word.locator(".piece").all()]
        for word in page.locator(".word").all()
    ]
    assert words == step.words
    assert "step=2" in page.url
    fits()
