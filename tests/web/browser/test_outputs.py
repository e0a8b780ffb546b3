"""Models that predict no tokens in the microscope: labels, tags, rewards and vectors, as a user sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from tests.web.families import make_labelers

TEXT = "the quick fox"


@pytest.fixture(scope="module")
def labelers(runs: Path) -> Path:
    return make_labelers(runs / "labelers")


def scores(page: Any) -> list[float]:
    page.wait_for_selector('[aria-label="Gradient times input"]')
    return [float(each.get_attribute("data-score")) for each in page.locator("[data-score]").all()]


def test_a_classifier(page: Any, fits: Any, labelers: Path) -> None:
    page.goto(f"/microscope?run=labelers/classifier&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(labelers / "classifier")
    special = cr.text.SpecialIds.of(tokenizer.special_ids)
    ids = [special.cls, *cr.text.prompt_ids(tokenizer, TEXT, special=True), special.sep]
    expected = np.exp(cr.inspect.label_logprobs(cr.inspect.view(model, ids))[0])
    bars = page.locator("button.chance[data-p]")
    shown = {int(e.get_attribute("data-id")): float(e.get_attribute("data-p")) for e in bars.all()}
    assert [shown[i] for i in range(2)] == pytest.approx(expected.tolist())
    bars.last.click()
    page.wait_for_url("**token=**")
    label = int(bars.last.get_attribute("data-id"))
    logit = cr.inspect.label_gradient(model, ids, label)
    page.wait_for_selector(f'[data-logit="{logit.logit}"]')
    assert scores(page) == pytest.approx(logit.scores.tolist(), abs=1e-6)
    page.click("text=Switch this head off")
    page.wait_for_selector("text=What you changed")
    fits()


def test_a_tagger(page: Any, fits: Any, labelers: Path) -> None:
    page.goto(f"/microscope?run=labelers/tagger&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    tokens = page.locator('[aria-label="Tokens"] .token')
    assert {each.get_attribute("data-label") for each in tokens.all()} <= {"O", "B-ANIMAL"}
    tokens.nth(2).click()
    page.wait_for_url("**at=2**")
    assert page.locator("button.chance[data-p]").count() == 2
    fits()


def test_a_reward(page: Any, fits: Any, labelers: Path) -> None:
    page.goto(f"/microscope?run=labelers/reward&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(labelers / "reward")
    expected = cr.inspect.rewards(cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT)))
    tokens = page.locator('[aria-label="Tokens"] .token')
    assert [float(e.get_attribute("data-reward")) for e in tokens.all()] == pytest.approx(expected.tolist())
    tokens.nth(3).click()
    page.wait_for_selector(f'[data-fact="so-far"][data-value="{expected[3]}"]')
    fits()


def test_an_embedder_compares_two_texts(page: Any, fits: Any, labelers: Path) -> None:
    page.goto(f"/microscope?run=labelers/embedder&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    page.get_by_label("Another text").fill("lazy dog")
    page.wait_for_url("**other=lazy+dog**")
    model, tokenizer = cr.load(labelers / "embedder")
    first, second = cr.generate.embed(model, tokenizer, [TEXT, "lazy dog"])
    page.wait_for_selector("[data-logit]")
    assert float(page.locator("[data-logit]").get_attribute("data-logit")) == pytest.approx(
        float(first @ second), abs=1e-5
    )
    assert len(scores(page)) == page.locator('[aria-label="Tokens"] .token').count()
    fits()


def test_a_bag_of_words(page: Any, fits: Any, flat: Path) -> None:
    page.goto(f"/microscope?run=flat/bag&text={TEXT}&at=2")
    page.wait_for_selector("text=What if a word were missing")
    model, tokenizer = cr.load(flat / "bag")
    seen = cr.inspect.BagView(model, tokenizer.encode(TEXT))
    other = int(seen.logprobs.argmin())
    page.click(f'button.chance[data-id="{other}"]')
    page.wait_for_url("**token=**")

    def numbers(name: str) -> list[float]:
        found = page.locator(f"[data-{name}]").all()
        return [float(each.get_attribute(f"data-{name}")) for each in found]

    assert numbers("adds") == seen.by_token[:, other].tolist()
    assert numbers("logit") == pytest.approx([seen.bias[other] + sum(t.adds[other] for t in seen.terms)])
    assert sorted(numbers("value")) == sorted(term.adds[other] for term in seen.terms)
    assert numbers("without") == np.exp(seen.without[2]).tolist()
    page.click('[aria-label="Tokens"] .token >> nth=0')
    page.wait_for_selector("th >> text=without the")
    assert numbers("without") == np.exp(seen.without[0]).tolist()
    assert numbers("adds") == seen.by_token[:, other].tolist()  # the label stays chosen
    fits()


def test_vectors_of_words(page: Any, fits: Any, flat: Path) -> None:
    page.goto("/runs")
    page.click('tr[data-run="flat/words"] a')
    page.click("text=Look inside")
    page.fill('[aria-label="Text"]', "the lazy fox xyzzy")
    page.click('[aria-label="Tokens"] .token:has-text("fox")')
    page.wait_for_selector("text=Nearest to fox")
    vectors = cr.inspect.embeddings.WordVectors(*cr.runs.load_vectors(flat / "words"))
    shown = [
        (each.get_attribute("data-neighbor"), float(each.get_attribute("data-value")))
        for each in page.locator("[data-neighbor]").all()
    ]
    assert shown == vectors.neighbors("fox", 10)
    assert page.locator("canvas.map").count() == 2
    page.click('[aria-label="Tokens"] [data-unknown]')
    page.wait_for_selector("text=This word has no vector")
    fits()
