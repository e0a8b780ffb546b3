"""A first visit: three questions, each answered from the home page by clicking on what is written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from tests.web.conftest import trained


@pytest.fixture(scope="module")
def diverged(runs: Path) -> str:
    """The name of a run whose rate is far too high."""
    with pytest.raises(cr.ChainruleError, match="diverged"):
        trained(runs / "too-fast", lr=9.0)
    return "too-fast"


def click(page: Any, role: str, name: str, exact: bool = False) -> None:
    page.get_by_role(role, name=name, exact=exact).first.click()


def test_which_head_looks_at_the_previous_token_in_a_model_that_i_trained(page: Any, runs: Path) -> None:
    page.goto("/")
    click(page, "link", "Runs", exact=True)
    click(page, "link", "one", exact=True)
    click(page, "link", "Look inside")
    click(page, "button", "What heads look for")
    block, head, score = cr.inspect.head_scores(cr.load(runs / "one")[0]).best("previous")
    figure = page.get_by_role("figure").filter(has_text="the token before")
    assert f"Most of all {block} head {head}: {score:.3g}" in figure.inner_text()
    figure.get_by_role("button", name=f"Show {block} head {head}").click()
    page.get_by_role("heading", name=f"{block}, head {head}").wait_for()
    page.get_by_role("img", name=f"Attention of {block} head {head}").wait_for()


def test_what_is_the_gradient_of_softmax_and_is_the_code_right(page: Any) -> None:
    page.goto("/")
    click(page, "link", "Open the calculus")
    click(page, "link", "Every op, such as softmax")
    page.get_by_role("searchbox").or_(page.get_by_role("textbox")).first.fill("softmax")
    page.get_by_role("link", name=re.compile(r"^softmax\b")).first.click()
    page.get_by_role("heading", name="softmax", exact=True).wait_for()
    page.get_by_text("agrees").first.wait_for()
    said = page.locator("main").inner_text()
    assert (
        "def softmax_backward" in said and "[SM." in said
    )  # the code, and the numbered equations of its derivation
    assert page.get_by_text("differs").count() == 0


def test_why_did_this_run_diverge(page: Any, fits: Any, diverged: str) -> None:
    page.goto("/")
    click(page, "link", "Runs", exact=True)
    click(page, "link", diverged, exact=True)
    why = page.get_by_role("alert")
    why.wait_for()
    assert re.search(r"Why it ended: .*diverged.*try a smaller lr than 9", why.inner_text())
    click(page, "link", "What the doctor says")
    heading = page.get_by_role("heading", name="What the doctor says")
    page.wait_for_function("e => e.getBoundingClientRect().top < innerHeight", arg=heading.element_handle())
    fits()
    click(page, "link", "Change its settings and try again")
    page.get_by_text("Sizes and settings").click()
    assert page.get_by_label("Learning rate (lr)").input_value() == "9"
