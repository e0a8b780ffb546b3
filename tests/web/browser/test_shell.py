"""The shell in a browser: every view opens, fits, and has a way out; the theme is kept."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.web.bundle import views

pytestmark = pytest.mark.usefixtures("page")


@pytest.mark.parametrize("path", views())
def test_every_view_opens_from_the_menu_and_fits(page: Any, fits: Any, path: str) -> None:
    page.goto("/")
    page.locator(f'nav a[href="{path}"]').first.click()
    page.wait_for_selector("main h1")
    page.wait_for_selector("[aria-busy]", state="detached")
    assert page.locator(f'#nav a[href="{path}"]').get_attribute("aria-current") == "page"
    assert "Chainrule Studio" in page.title()
    fits()


@pytest.mark.parametrize("path", views())
def test_every_module_of_a_view_is_fetched_at_once(page: Any, path: str) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto(path)
    page.wait_for_selector("main h1")
    modules = {url for url in loaded if url.endswith(".js") and not url.endswith("theme.js")}
    told = page.eval_on_selector_all("link[rel=modulepreload]", "links => links.map(link => link.href)")
    assert modules == {*told} and len(told) == len({*told})


def test_home_leads_to_working_views(page: Any, fits: Any) -> None:
    page.goto("/")
    page.wait_for_selector(".way")
    assert page.locator(".way").count() == 3
    ways = [each.get_attribute("href") for each in page.locator("a.way").all()]
    for way in ways:
        page.goto("/")
        page.locator(f"a.way[href='{way}']").click()
        page.wait_for_selector("main h1")
        page.wait_for_selector("[aria-busy]", state="detached")
        assert page.locator(".error").count() == 0
        fits()


def test_the_theme_is_kept(page: Any) -> None:
    page.goto("/")
    button, shade = page.locator("#theme"), "getComputedStyle(document.body).backgroundColor"
    button.click()
    light = page.evaluate(shade)
    button.click()
    assert page.evaluate(shade) != light
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    button.click()  # auto: as the browser prefers, also when that changes
    for preferred in ("dark", "light"):
        page.emulate_media(color_scheme=preferred)
        page.wait_for_selector(f"html[data-choice=auto][data-theme={preferred}]")
    assert page.evaluate(shade) == light


def test_a_view_that_is_left_while_it_computes_stays_left(page: Any) -> None:
    held: list[Any] = []
    page.route("**/api/microscope/view?*", lambda route: held.append(route))
    with page.expect_request("**/api/microscope/view?*"):
        page.goto("/microscope?run=one&text=fox")
    page.locator('#nav a[href="/scaling"]').click()
    page.wait_for_selector('[data-estimate="a"]')
    with page.expect_response("**/api/microscope/view?*"):
        held[0].continue_()
    page.wait_for_timeout(200)
    assert page.url.endswith("/scaling?form=isoflop&within=4")


def test_back_returns_to_the_view_before(page: Any) -> None:
    page.goto("/calculus/ops")
    page.locator('a[href="/calculus/ops/tanh"]').click()
    page.wait_for_selector("h1 >> text=tanh")
    page.go_back()
    page.wait_for_selector("h1 >> text=Every op")
    assert page.url.endswith("/calculus/ops")
