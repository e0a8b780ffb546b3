"""The page in a browser: it shows the text of an answer, whatever its tokens are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chainrule.serve.models import Served
from chainrule.text import BPETokenizer
from tests.serve.conftest import Serving, writing_model

TEXT = "once upon a time lit a lit match a lit 🙂 é " * 4
OPTIONS = {"max_tokens": 40, "seed": 3}


@pytest.fixture(scope="module")
def bytewise() -> Iterator[Serving]:
    """A model that writes bytes at random: most of them are parts of characters."""
    tokenizer = BPETokenizer.train(TEXT, 300)
    found = Serving([Served("bytes", writing_model(tokenizer.vocab_size, 256), tokenizer, slots=1)])
    yield found
    found.close()


@pytest.fixture
def page(browser: Any, bytewise: Serving) -> Iterator[Any]:
    context = browser.new_context(base_url=bytewise.url)
    found = context.new_page()
    wrong: list[str] = []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.set_default_timeout(15_000)
    found.goto("/")
    for label, value in (("Tokens at most", 40), ("Seed", 3)):
        found.locator("label.field", has_text=label).locator("input").fill(str(value))
    yield found
    context.close()
    assert wrong == []


def test_a_completion_follows_its_prompt(bytewise: Serving, page: Any) -> None:
    """Also where the space at the end of the prompt is a part of the first token."""
    page.click("#tab-complete")
    page.fill("#prompt", "once upon ")
    page.click("#complete-form [data-send]")
    page.locator("#status", has_text="the first after").wait_for()
    text = bytewise.complete(prompt="once upon ", **OPTIONS)["choices"][0]["text"]
    assert "\ufffd" in text  # parts of characters
    assert page.text_content("#completion") == "once upon " + text


def test_an_answer_is_its_content(bytewise: Serving, page: Any) -> None:
    page.click("#tab-chat")
    page.fill("#message", "lit")
    page.click("#chat-form [data-send]")
    page.locator("#status", has_text="the first after").wait_for()
    asked = [{"role": "user", "content": "lit"}]
    answer = bytewise.post("/v1/chat/completions", messages=asked, **OPTIONS)["choices"][0]["message"][
        "content"
    ]
    assert page.text_content(".turn.assistant") == answer
