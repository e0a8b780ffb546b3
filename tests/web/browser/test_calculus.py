"""Calculus in a browser: numbers on the page equal the library's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule import ops
from chainrule.scalar import Expression


def numbers(page: Any, array: str) -> list[float]:
    cells = page.locator(f'[data-array="{array}"] [data-value]').all()
    return [float(each.get_attribute("data-value")) for each in cells]


def test_an_expression_is_stepped_by_keys_and_its_gradients_are_the_engines(page: Any, fits: Any) -> None:
    page.goto("/calculus")
    page.fill("textarea", "y = tanh(w * x); L = (y - t) ** 2")
    page.wait_for_selector('[data-variable="t"]')
    page.fill('input[name="w"]', "0.3")
    page.wait_for_url("**w=0.3**")
    shown = {name: float(page.locator(f'input[name="{name}"]').input_value()) for name in ("w", "x", "t")}
    found = Expression.read("y = tanh(w * x); L = (y - t) ** 2")
    nodes = found.graph(shown)
    nodes["L"].backward()
    for name in shown:
        cell = page.locator(f'[data-variable="{name}"] .backward')
        assert float(cell.get_attribute("data-value")) == nodes[name].grad
    box = page.locator('.node[data-node="L"]')
    assert float(box.get_attribute("data-value")) == nodes["L"].data
    page.locator(".graph").focus()
    page.keyboard.press("Home")
    assert page.locator(".controls .badge").inner_text() == "forward 0 of 4"
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert "backward 1 of" in page.locator(".controls").inner_text()
    assert page.locator('.node[data-node="L"]').get_attribute("data-grad") == "1"
    link = page.url
    page.goto("/")
    page.goto(link)
    page.wait_for_selector(".node.back")
    assert page.locator('input[name="w"]').input_value() == "0.3"
    fits()


def test_the_program_is_shown_and_gives_the_same_numbers(page: Any) -> None:
    page.goto("/calculus")
    page.wait_for_selector("[data-variable]")
    page.click("text=Copy as Python")
    names: dict[str, Any] = {}
    exec(page.locator("dialog code").inner_text(), names)
    shown = page.locator('[data-variable="w1"] .backward').get_attribute("data-value")
    assert names["w1"].grad == float(shown) == 6.0
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")


def test_an_op_is_edited_and_its_numbers_are_the_librarys(page: Any, fits: Any) -> None:
    page.goto("/calculus/ops/softmax")
    page.fill('[aria-label="x, entry 1"]', "2.5")
    page.keyboard.press("Tab")
    page.wait_for_url("**x.1=2.5**")
    page.wait_for_selector('[data-array="y"]')
    page.wait_for_selector("[aria-busy]", state="detached")
    x = np.array(
        [float(each.input_value()) for each in page.locator('[data-array="x"] input').all()]
    ).reshape(3, 4)
    assert x[0, 1] == 2.5
    assert numbers(page, "y") == pytest.approx(np.ravel(ops.softmax(x)))
    assert numbers(page, "dx") == pytest.approx(numbers(page, "nx"), abs=1e-9)
    assert "agrees" in page.locator("[data-error]").inner_text()
    page.locator('.equations [data-tag="SM.4"]').hover()
    lit = page.locator(".line.lit")
    assert [("dx = dy * y" in each, "dx -= y" in each) for each in lit.all_inner_texts()] == [(1, 0), (0, 1)]
    page.click('.equations [data-tag="SM.4"] button')
    page.wait_for_selector('.derivation .equation[data-tag="SM.4"]')
    assert page.locator(".derivation math").count() > 10
    fits()


def test_an_address_holds_the_edits(page: Any) -> None:
    page.goto("/calculus/ops/softmax?x.0=2")
    page.wait_for_selector('[data-array="y"]')
    assert page.locator('[aria-label="x, entry 0"]').input_value() == "2"
    page.click("text=Undo edits")
    page.wait_for_url("**/softmax")


@pytest.mark.parametrize("name", ["attention", "lstm_cell", "cross_entropy", "embedding", "where"])
def test_larger_ops_fit_the_page(page: Any, fits: Any, name: str) -> None:
    page.goto(f"/calculus/ops/{name}")
    page.wait_for_selector(".grads")
    assert "agrees" in page.locator("[data-error]").inner_text()
    fits()
