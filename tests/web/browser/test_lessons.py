"""Lessons in a browser: every one opens with its live views, exercises are checked, progress is kept."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.lessons.learning_rate import descend
from chainrule.web.lessons import reading


@pytest.mark.parametrize("name", reading.lessons())
def test_every_lesson_opens_with_its_live_views(page: Any, fits: Any, name: str) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"/lessons/{name}")
    lesson = reading.lesson(name)
    page.wait_for_selector("article.lesson h2")
    widgets = [block for block in lesson.blocks if block["kind"] == "widget"]
    for i in range(len(widgets)):
        page.locator(".embedded").nth(i).locator("> *").first.wait_for(state="attached")
    page.wait_for_selector("[aria-busy]", state="detached")
    assert page.locator("h1:visible").count() == 1
    assert page.locator(".error").count() == 0
    assert page.locator(".exercise").count() == len(lesson.exercises)
    assert page.url.endswith(f"/lessons/{name}")  # live views do not change the address
    assert lesson.title in page.title()
    fits()


def test_an_exercise_is_checked_and_progress_is_kept(page: Any) -> None:
    page.goto("/lessons")
    page.click("text=Begin with one number")
    page.wait_for_selector('[data-exercise="0"]')
    answer, check = (page.locator(f'[data-exercise="0"] {part}') for part in ("input", "button"))
    answer.fill("10 * x")
    check.click()
    page.wait_for_selector('[data-right="false"]')
    answer.fill("__import__('os')")
    check.click()
    page.wait_for_selector('[data-exercise="0"] .error')
    answer.fill("5 * 2 * x - 3")
    answer.press("Enter")
    page.wait_for_selector('[data-right="true"]')
    page.locator('[data-exercise="1"] input').fill("2/3")
    page.locator('[data-exercise="1"] button').click()
    page.wait_for_selector("text=✓ done")
    page.goto("/lessons")
    page.wait_for_selector('[data-lesson="one-number"][data-done="2"]')
    page.reload()
    page.wait_for_selector("text=1 of 20 lessons done")
    page.click("text=Continue: The chain rule")
    page.wait_for_selector("h1 >> text=The chain rule")
    page.click('nav[aria-label="Lessons"] >> text=One number and its slope')
    page.wait_for_selector("h1 >> text=One number and its slope")
    page.goto("/lessons")
    page.click("text=Start over")
    page.wait_for_selector('[data-lesson="one-number"][data-done="0"]')


def test_a_figure_moves_with_the_keys_and_has_an_address(page: Any, fits: Any) -> None:
    page.goto("/lessons/figures/descent?rate=0.3")
    number = page.locator('[data-number="θ after 20 steps"] [data-value]')
    page.wait_for_selector('[data-number="θ after 20 steps"]')
    assert float(number.get_attribute("data-value")) == descend(0.3, 20)[-1]
    page.locator('[data-knob="rate"]').focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**rate=0.31")
    page.wait_for_selector("[aria-busy]", state="detached")
    assert float(number.get_attribute("data-value")) == descend(0.31, 20)[-1]
    fits()


def test_a_derivation_opens_inside_the_lesson(page: Any) -> None:
    page.goto("/lessons/probability")
    page.click("summary >> text=softmax")
    page.wait_for_selector("details.derivation[open] .equation math")


def test_a_lesson_that_is_not_there_leads_back(page: Any) -> None:
    with page.expect_response("**/api/lessons/nothing"):
        page.goto("/lessons/nothing")
    page.wait_for_selector(".error >> text=no such lesson")
    page.click("text=Back to Lessons")
    page.wait_for_selector("h1 >> text=Lessons")
