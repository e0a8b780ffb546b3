"""n-grams, embeddings, diagnostics, alignment and scaling in a browser: numbers on the page are the library's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli.commands.diagnose import of_run
from chainrule.inspect.embeddings import WordVectors
from chainrule.lessons.alignment.methods import distances, small_world
from chainrule.lessons.initialization import deep_network
from chainrule.nn.positions import sinusoidal
from chainrule.scaling.advice import advise
from chainrule.scaling.fits.isoflop import fit_isoflop, near_best
from chainrule.scaling.fits.table import Runs
from chainrule.web.lab.scaling import BUILT_IN, COLUMNS, RESAMPLES


def value(page: Any, selector: str, name: str = "data-value") -> float:
    return float(page.locator(selector).first.get_attribute(name))


def idle(page: Any) -> None:
    page.wait_for_selector("[aria-busy]", state="detached")


def test_ngrams(page: Any, fits: Any) -> None:
    page.goto("/ngrams")
    page.wait_for_selector('[data-fact="nll"]')
    words = sorted(set(re.findall(r"\b[a-z]{3,}\b", cr.data.load("pydoc").text)))
    tokenizer = cr.text.CharTokenizer.train("".join(words))
    documents = [tokenizer.encode(word) + 1 for word in words]
    model = cr.models.NGram.fit(documents, order=2, vocab_size=27)
    assert value(page, '[data-fact="nll"]') == pytest.approx(model.nll())
    row = 1 + tokenizer.encode("q")[0]
    cells = page.locator('tr[data-row="q"] [data-value]').all()
    shown = [float(cell.get_attribute("data-value")) for cell in cells]
    assert np.allclose(shown, model.probabilities([[row]])[0], atol=1e-6)
    page.locator('.vertex[aria-label="After t"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**row=t")
    assert page.locator("tr.chosen").get_attribute("data-row") == "t"
    page.locator('[aria-label="Order"]').focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**order=3**")
    idle(page)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Order"  # focus stays
    page.wait_for_selector("text=Letters before the row's")
    fits()


def test_embeddings_of_a_run_and_of_words(page: Any, fits: Any, runs: Path) -> None:
    page.goto("/embeddings?run=one&word=o")
    page.wait_for_selector("[data-neighbor]")
    model, tokenizer = cr.load(runs / "one")
    pieces = [tokenizer.piece(id) for id in range(tokenizer.vocab_size)]
    nearest = WordVectors(pieces, model.wte.weight.array).neighbors("o")
    shown = [each.get_attribute("data-neighbor") for each in page.locator("[data-neighbor]").all()]
    assert shown == [word for word, _ in nearest]
    assert value(page, "[data-neighbor]") == nearest[0][1]
    page.wait_for_selector("text=Positions it learned")
    fits()
    page.goto("/embeddings")
    page.wait_for_selector("[data-answer]", timeout=60_000)
    page.fill('[aria-label="Word"]', "list")
    page.wait_for_url("**word=list**")
    idle(page)
    assert page.locator("h2 >> text=Nearest to list").count() == 1
    fits()


def test_positions(page: Any, fits: Any) -> None:
    page.goto("/embeddings/positions?n=16&d=8")
    page.wait_for_selector("figure[data-map]")
    table = sinusoidal(16, 8)
    assert value(page, 'figure[data-map="Encoding"]', "data-last") == pytest.approx(table[-1, -1], abs=1e-6)
    assert value(page, '[data-pair="0"] [data-value]') == pytest.approx(2 * np.pi)
    fits()


def test_diagnostics_of_a_network_and_of_a_checkpoint(page: Any, fits: Any, runs: Path) -> None:
    page.goto("/diagnostics?depth=3&width=32&draw=large&activation=tanh")
    page.wait_for_selector("[data-flat]")
    report = deep_network(3, 32, draw="large", lr=0.1)
    shown = [float(each.get_attribute("data-flat")) for each in page.locator("[data-flat]").all()]
    assert shown == [layer.flat for layer in report.layers]
    assert value(page, "[data-ratio]", "data-ratio") == report.parameters[0].update_ratio
    fits()
    page.select_option("select >> nth=0", "one")
    page.wait_for_url("**run=one")
    _, _, examined = of_run(runs / "one")
    page.wait_for_selector(f'[data-fact="loss"][data-value="{examined.loss}"]')
    fits()


def test_alignment(page: Any, fits: Any) -> None:
    page.goto("/alignment?beta=0.5&steps=20")
    page.wait_for_selector('[data-fact="reward"]')
    world = small_world()
    assert value(page, '[data-fact="reward"]') == world.reward(world.optimum(0.5))
    assert value(page, '[data-fact="kl"]') == world.kl(world.optimum(0.5))
    page.click("text=Train by DPO")
    page.wait_for_selector('[data-trained="DPO"]')
    end = distances(world, "DPO", 0.5, 20, 20)[-1][1]
    assert value(page, "[data-trained]", "data-distance") == end
    page.wait_for_url("**trained=DPO")
    page.reload()
    page.wait_for_selector('[data-trained="DPO"]')
    page.locator('[aria-label="β"]').focus()
    page.keyboard.press("End")
    page.wait_for_url("**beta=5&**")
    page.wait_for_selector(f'[data-fact="reward"][data-value="{world.reward(world.optimum(5.0))}"]')
    assert page.locator("[data-trained]").count() == 0  # it was trained for another β
    page.keyboard.press("Home")
    page.wait_for_url("**beta=0.05&**")
    page.wait_for_selector(f'[data-fact="reward"][data-value="{world.reward(world.optimum(0.05))}"]')
    idle(page)
    assert page.locator(".error").count() == 0
    fits()


def test_the_last_question_wins(page: Any) -> None:
    page.goto("/alignment?beta=0.5")
    page.wait_for_selector('[data-fact="reward"]')
    held: list[Any] = []
    page.route("**/api/alignment?*beta=5", lambda route: held.append(route))
    page.locator('[aria-label="β"]').focus()
    with page.expect_request("**/api/alignment?*beta=5"):
        page.keyboard.press("End")
    page.keyboard.press("Home")
    best = small_world().reward(small_world().optimum(0.05))
    page.wait_for_selector(f'[data-fact="reward"][data-value="{best}"]')
    with page.expect_response("**/api/alignment?*beta=5"):
        held[0].continue_()
    page.wait_for_timeout(200)
    assert value(page, '[data-fact="reward"]') == best


def test_scaling(page: Any, fits: Any) -> None:
    page.goto("/scaling")
    page.wait_for_selector('[data-estimate="a"]')
    found = fit_isoflop(near_best(Runs.read(BUILT_IN, COLUMNS), 4.0), resamples=RESAMPLES)
    assert value(page, '[data-estimate="a"] [data-value]') == found.estimates["a"].value
    assert page.locator("[data-valley]").count() == len(found.valleys)
    page.select_option('[aria-label="Law"]', "power")
    page.wait_for_selector("[data-prediction]")
    fits()
    page.select_option("select >> nth=0", "own")
    page.wait_for_selector("textarea")
    page.click("text=Copy link")
    page.wait_for_selector("#toast.on >> text=No link and no file holds your own table")
    page.click("text=Plan a budget")
    page.wait_for_selector('[data-option="law"]')
    advice = advise(1e18)
    assert value(page, '[data-option="law"] [data-value]') == advice.law.params
    page.locator('[aria-label="Tokens of text there are"]').focus()
    page.keyboard.press("Home")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector('[data-option="epochs"]')
    fits()


def test_the_loss_mask(page: Any, fits: Any) -> None:
    page.goto("/tokens/mask")
    page.wait_for_selector("[data-trained]")
    assert page.locator('[data-learned="true"]').count() == value(page, "[data-trained]", "data-trained")
    fits()
