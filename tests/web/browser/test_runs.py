"""Runs in a browser: numbers are those of the log, and a training is started and stopped by clicks."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import chainrule as cr
from tests.web.conftest import trained


def test_a_run_shows_the_numbers_of_its_log(page: Any, fits: Any, runs: Path) -> None:
    page.goto("/runs")
    page.click('tr[data-run="one"] a')
    page.wait_for_selector('[data-fact="step"][data-value="12"]')
    history = cr.runs.History.of(runs / "one")
    for name in ("loss", "validation"):
        shown = page.locator(f'[data-fact="{name}"]').get_attribute("data-value")
        assert float(shown) == history.series(name)[-1][1]
    assert page.locator(".chart svg").count() == 5 and page.locator("text=Resume").count() == 0
    assert (
        page.locator("blockquote").inner_text().strip()
        == history.records[-1]
        .get("sample", [r for r in history.records if "sample" in r][-1]["sample"])
        .strip()
    )
    page.click("text=Examine the newest checkpoint")
    page.wait_for_selector('[data-code="weights_ok"]')
    fits()


def test_two_runs_side_by_side(page: Any, fits: Any, runs: Path) -> None:
    page.goto("/runs")
    page.check('[aria-label="Compare one"]')
    page.check('[aria-label="Compare two"]')
    page.click("text=Compare 2")
    page.wait_for_selector('[data-setting="lr"]')
    assert page.locator("[data-setting]").count() == 1
    cells = page.locator('[data-result="best_validation"] [data-value]').all()
    best = [cr.runs.History.of(runs / name).best for name in ("one", "two")]
    assert [float(cell.get_attribute("data-value")) for cell in cells] == [each[1] for each in best if each]
    fits()


def test_a_training_is_forecast_started_and_stopped(page: Any, fits: Any, runs: Path) -> None:
    sizes = "n_layer=1&n_head=1&n_embd=8&block_size=8&batch_size=2"
    page.goto(f"/runs/new?data={runs / 'fox.txt'}&steps=1000000&name=clicked&{sizes}")
    page.click("text=Forecast time and memory")
    page.wait_for_selector('[data-code="forecast"]')
    fits()
    page.click("text=Start training")
    page.wait_for_url("**/runs/clicked")
    page.wait_for_selector('[data-state="running"]', timeout=60_000)
    page.wait_for_selector('[data-total="1000000"]')
    page.wait_for_selector('[data-fact="left"]')
    page.click("summary >> text=Settings")
    page.wait_for_selector("tr:has(td code:text-is('n_embd')) >> text=8")
    fits()
    page.click("text=Stop")
    page.wait_for_selector('[data-state="interrupted"]', timeout=60_000)
    assert cr.runs.History.of(runs / "clicked").state == "interrupted"
    assert page.locator("text=Resume").count() == 1


def test_a_training_that_cannot_begin_says_why(page: Any, runs: Path) -> None:
    (runs / "short.txt").write_text("a fox", encoding="utf-8")
    page.goto(f"/runs/new?data={runs / 'short.txt'}&steps=5&name=wrong")
    page.click("text=Start training")
    page.wait_for_selector(".error >> text=block_size", timeout=60_000)
    assert page.locator('[data-state="failed"]').count() == 1
    assert page.locator(".error").count() == 1


def test_what_cannot_be_trained_is_said_beside_the_field(page: Any, fits: Any) -> None:
    page.goto("/runs/new?data=pydoc&steps=5&name=never")
    page.wait_for_selector(f"[name=n_embd][placeholder='{cr.models.GPTConfig().n_embd}']", state="attached")
    assert not page.locator("details").evaluate("it => it.open")
    page.click("summary")
    page.fill("[name=lr]", "-1")
    page.fill("[name=seed]", "often")
    page.wait_for_selector("#wrong-lr >> text=train: lr is -1.0 (must be a positive number)")
    page.wait_for_selector("#wrong-seed >> text=must be an integer")
    fits()
    page.click("text=Start training")
    page.wait_for_selector("[name=lr]:focus")
    assert "/runs/new" in page.url and page.locator("[aria-invalid]").count() == 2
    page.fill("[name=lr]", "")
    page.fill("[name=seed]", "1")
    page.wait_for_selector("[aria-invalid]", state="detached")
    page.select_option("[name=family]", "lstm")
    page.wait_for_selector("[name=n_head]", state="hidden")


def test_what_diverged_is_marked_and_its_rate_can_be_changed(page: Any, runs: Path) -> None:
    with contextlib.suppress(cr.ChainruleError):
        trained(runs / "fast", lr=0.9, weight_decay=0.0, clip=1e9)
    page.goto("/runs")
    badge = page.locator('tr[data-run="fast"] [data-findings]')
    assert int(badge.get_attribute("data-findings")) > 0
    badge.click()
    page.wait_for_selector("#doctor [data-level=problem]")
    page.wait_for_function("document.getElementById('doctor').getBoundingClientRect().top < innerHeight")
    page.click("text=Change its settings and try again")
    page.wait_for_selector("[name=lr]:focus")
    assert page.input_value("[name=lr]") == "0.9" and page.input_value("[name=n_embd]") == "16"


def test_a_step_is_replayed(page: Any, fits: Any, runs: Path) -> None:
    page.goto("/runs/one")
    page.fill('[aria-label="Step to replay"]', "7")
    page.click("text=Replay it")
    page.wait_for_selector("text=the bits of the log")
    found = cr.runs.replay(runs / "one", 7)
    for name in ("loss", "norm", "lr"):
        shown = page.locator(f'[data-replayed="{name}"]').get_attribute("data-value")
        assert float(shown) == getattr(found, name)
    for each in found.report.parameters:
        shown = page.locator(f'[data-parameter="{each.name}"] [data-value]').get_attribute("data-value")
        assert float(shown) == each.grad_norm
    page.select_option('[aria-label="Array"]', "gradient/wte.weight")
    page.wait_for_selector('[data-array="gradient/wte.weight"]')
    most = page.locator('[data-array] [data-stat="most"]').get_attribute("data-value")
    assert float(most) == float(found.gradients["wte.weight"].max())
    assert "replay=7" in page.url
    fits()


def test_a_run_that_is_deleted_while_it_is_shown(page: Any, runs: Path) -> None:
    shutil.copytree(runs / "two", runs / "short")
    page.goto("/runs/short")
    page.wait_for_selector('[data-state="finished"]')
    shutil.rmtree(runs / "short")
    page.wait_for_selector('[data-state="deleted"]')
    page.wait_for_selector(".error >> text=is no longer in the directory of the Studio")
    assert page.locator("text=Look inside").count() == 0
    page.reload()
    page.wait_for_selector(".error >> text=run 'short': not in")
