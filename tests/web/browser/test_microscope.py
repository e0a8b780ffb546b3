"""The microscope in a browser: what is shown is what the library computes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr

TEXT = "the quick fox"


def test_predictions_attention_lens_and_heads(page: Any, fits: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&at=3")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / "one")
    ids = cr.text.prompt_ids(tokenizer, TEXT)
    seen = cr.inspect.view(model, ids)
    losses = [each.get_attribute("data-loss") for each in page.locator('[aria-label="Tokens"] .token').all()]
    assert losses[0] == "null" and [float(loss) for loss in losses[1:]] == pytest.approx(
        seen.loss[:-1].tolist()
    )
    shown = [
        (int(e.get_attribute("data-id")), float(e.get_attribute("data-p")))
        for e in page.locator("button.chance[data-p]").all()
    ]
    assert [id for id, _ in shown] == [id for id, _ in seen.top(8)[3]]
    assert [p for _, p in shown] == pytest.approx([p for _, p in seen.top(8)[3]])
    weights = [float(e.get_attribute("data-weight")) for e in page.locator("[data-weight]").all()]
    assert weights == pytest.approx(seen.attention("h.0")[0, 3].tolist())
    cells = page.locator('[data-stream="h.0"] [data-id]').all()
    lens = cr.inspect.logit_lens(model, ids, top=1)
    assert [int(cell.get_attribute("data-id")) for cell in cells] == [top[0][0] for top in lens.top[-1]]
    best = page.locator('[data-kind="previous"] [data-best]')
    block, head, score = cr.inspect.head_scores(model).best("previous")
    assert best.get_attribute("data-best") == f"{block}:{head}"
    assert page.locator('[data-kind="previous"] thead th').all_inner_texts() == ["block", "head 0", "head 1"]
    thumb = page.locator(f'.thumb[aria-label="{block} head {head}"]')
    for kind in (
        "previous",
        "induction",
    ):  # each small map has its scores, and the best head of each is marked
        shown = page.locator(f'.thumb [data-looks="{kind}"]')
        values = cr.inspect.head_scores(model).scores[kind].ravel()
        assert [float(each.get_attribute("data-value")) for each in shown.all()] == values.tolist()
        assert page.locator(f'.thumb .best[data-looks="{kind}"]').count() == 1
    assert thumb.locator('.best[data-looks="previous"]').count() == 1
    assert float(best.get_attribute("data-value")) == score
    assert int(page.locator("[data-parameters]").get_attribute("data-parameters")) == model.count()
    fits()


def test_tokens_are_chosen_by_keys_and_heads_switched_off(page: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&at=0")
    page.wait_for_selector("[data-parameters]")
    page.locator('[aria-label="Tokens"]').focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**at=1**")
    page.click('[aria-label="h.0 head 1"]')
    page.wait_for_selector("h3 >> text=h.0, head 1")
    page.click("text=Switch this head off")
    page.wait_for_selector("text=h.0 head 1 off")
    model, tokenizer = cr.load(runs / "one")
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT), cr.inspect.ZeroHeads("h.0", 1))
    last = page.locator('[aria-label="Tokens"] .token').last.get_attribute("data-loss")
    assert float(last) == pytest.approx(seen.loss[-2])
    kl = [float(each.get_attribute("data-kl")) for each in page.locator("[data-kl]").all()]
    effect = cr.inspect.effect(model, cr.text.prompt_ids(tokenizer, TEXT), cr.inspect.ZeroHeads("h.0", 1))
    assert kl == effect.kl.tolist() and "edits=" in page.url


def test_the_slider_goes_to_another_checkpoint(page: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    page.locator('[aria-label="Checkpoint"]').focus()
    page.keyboard.press("Home")
    page.wait_for_url("**step=**")
    page.wait_for_selector("[data-parameters]")
    page.wait_for_selector("[aria-busy]", state="detached")
    first = cr.runs.RunFolder(runs / "one").saved()[0]
    model, tokenizer = cr.load(first)
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT))
    page.wait_for_timeout(300)
    last = page.locator('[aria-label="Tokens"] .token').last.get_attribute("data-loss")
    assert float(last) == pytest.approx(seen.loss[-2])


def of(page: Any, selector: str, name: str = "value") -> list[float]:
    """The exact numbers behind what is shown."""
    return [float(each.get_attribute(f"data-{name}")) for each in page.locator(selector).all()]


def test_a_link_to_a_run_that_is_gone_says_so(page: Any) -> None:
    page.goto("/microscope?run=nosuch")
    page.wait_for_selector(".error >> text=run 'nosuch': not in")
    page.select_option('[aria-label="Model"]', "one")
    page.wait_for_selector("[data-parameters]")
    assert "run=one" in page.url and page.locator(".error").count() == 0


def test_a_source_and_a_target(page: Any, fits: Any, runs: Path, families: str) -> None:
    page.goto(f"/microscope?run={families}/seq2seq&text=the fox&target=fox")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / families / "seq2seq")
    marks = cr.text.Marks.of(tokenizer.special_ids, model.config.target_start)
    ids = (tokenizer.encode("the fox"), [marks.start, *tokenizer.encode("fox")])
    seen = cr.inspect.view(model, ids)
    block, at = seen.blocks[-1], len(ids[1]) - 1
    assert page.locator("h3", has_text=f"{block} → source, head 0").count() == 1
    assert of(page, ".large [data-weight]", "weight") == pytest.approx(
        seen.attention(block, cross=True)[0, at].tolist()
    )
    token = seen.top(1)[at][0][0]
    expected = cr.inspect.input_gradient(model, ids, token, position=at, of="source")
    shown = of(page, '[aria-label="Gradient times input of the source"] [data-score]', "score")
    assert shown == expected.scores.tolist()
    fits()


def test_gates_of_a_recurrent_model(page: Any, fits: Any, runs: Path, families: str) -> None:
    page.goto(f"/microscope?run={families}/lstm&text={TEXT}&at=3")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / families / "lstm")
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT))
    gates = seen.gates(seen.blocks[0])
    assert page.locator("figure[data-gate]").count() == len(gates) == 6
    for name, values in gates.items():
        assert of(page, f'[data-mean="{name}"]') == pytest.approx([float(values[3].mean())], abs=1e-6)
    fits()


@pytest.mark.parametrize("family", ["bert", "ngram", "mlp", "llama", "imported"])
def test_other_families(page: Any, fits: Any, runs: Path, families: str, family: str) -> None:
    page.goto(f"/microscope?run={families}/{family}&text={TEXT}&at=2")
    page.wait_for_selector("[data-parameters]")
    model, _ = cr.load(runs / families / family)
    assert of(page, "[data-parameters]", "parameters") == [model.count()]
    assert page.locator(".error").count() == 0 and page.locator("button.chance[data-p]").count() == 8
    fits()


def test_neurons_norms_causes_and_values(page: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&at=4")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / "one")
    ids = cr.text.prompt_ids(tokenizer, TEXT)
    seen = cr.inspect.view(model, ids)
    strongest = page.locator("[data-neuron]").first
    row = seen.neurons("h.0")[4]
    assert abs(row).max() == pytest.approx(abs(float(strongest.get_attribute("data-value"))), rel=1e-6)
    assert of(page, '[data-norms="h.0"] [data-value]') == seen.stream_norms["h.0"].tolist()
    token = seen.top(2)[4][1][0]
    page.click(f'button.chance[data-id="{token}"]')
    logit = float(seen.logits[4, token])
    page.wait_for_selector(f'[data-logit="{logit!r}"]')
    terms = {term.name: term.value for term in cr.inspect.attribute(model, ids, token, position=4).terms}
    for each in page.locator("[data-term]").all():
        assert float(each.get_attribute("data-value")) == terms[each.get_attribute("data-term")]
    scores = cr.inspect.input_gradient(model, ids, token, position=4).scores.tolist()
    assert of(page, '[aria-label="Gradient times input"] [data-score]', "score") == scores
    page.click('details[data-block="h.0"] summary')
    page.click('[aria-label="Values of h.0.mlp.gelu"]')
    page.wait_for_selector('[data-call="h.0.mlp.gelu"]')
    most = float(seen.value("h.0.mlp.gelu").max())
    assert of(page, '[data-call] [data-stat="most"]') == pytest.approx([most])


def test_patches_pushes_and_two_checkpoints(page: Any, fits: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&other=jumps over it")
    page.wait_for_selector("[data-parameters]")
    model, tokenizer = cr.load(runs / "one")
    clean, other = (cr.text.prompt_ids(tokenizer, text) for text in (TEXT, "jumps over it"))
    page.click("text=Try without each head")
    page.wait_for_selector('[aria-label="Without each head"]')
    expected = cr.inspect.ablation(model, clean).kl[0].tolist()
    assert of(page, '[aria-label="Without each head"] [data-value]') == expected
    page.click("text=Try every place")
    page.wait_for_selector('[aria-label="Recovered difference"]')
    right, wrong = (int(cr.inspect.view(model, each).logits[-1].argmax()) for each in (clean, other))
    found = cr.inspect.patching(model, clean, other, right, wrong).recovered
    assert of(page, '[aria-label="Recovered difference"] [data-value]') == found.ravel().tolist()
    page.fill("label:has-text('Towards a text') input", "fox")
    page.fill("label:has-text('away from a text') input", "dog")
    page.click("text=Steer")
    page.wait_for_selector("[data-edit]")
    fox, dog = (cr.text.prompt_ids(tokenizer, text) for text in ("fox", "dog"))
    push = cr.inspect.Steer("h.0", cr.inspect.steering_vector(model, [fox], [dog], "h.0"), 4)
    assert of(page, ".changed [data-kl]", "kl") == cr.inspect.effect(model, clean, push).kl.tolist()
    page.click("text=Patch it in")
    page.wait_for_selector("[data-edit='1']")
    page.fill("label:has-text('Another text') input", "fox")
    page.click("text=Patch it in")
    page.wait_for_selector(".error >> text=the other text has 3 tokens (must be 13, as this one)")
    page.click("text=Undo the last change")
    page.wait_for_selector("[data-edit='1']")
    page.click("text=Undo all")
    page.wait_for_selector("[data-edit]", state="detached")
    page.select_option('[aria-label="Compare with"]', index=1)
    page.wait_for_selector("[data-position]")
    first = cr.runs.RunFolder(runs / "one").saved()[0]
    assert (
        of(page, "[data-position] [data-kl]", "kl")
        == cr.inspect.compare(model, cr.load(first)[0], clean).kl.tolist()
    )
    fits()


def test_a_pattern_is_edited_by_a_click(page: Any, runs: Path) -> None:
    page.goto(f"/microscope?run=one&text={TEXT}&at=6")
    page.wait_for_selector("[data-parameters]")
    page.check("text=Edit: click a cell")
    page.locator(".large .tokens .token").nth(1).click()
    page.wait_for_selector("text=token 6 looks at 1 alone")
    page.wait_for_selector("[aria-busy]", state="detached")
    page.wait_for_timeout(300)
    weights = of(page, ".large [data-weight]", "weight")
    assert weights == [float(i == 1) for i in range(len(weights))]


def test_what_takes_long_says_how_far_it_is_and_is_canceled(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def slow(*args: Any, progress: Any, **options: Any) -> None:
        try:
            for done in range(1000):
                progress(done, 1000)
                time.sleep(0.02)
        finally:
            ended.set()

    page.goto(f"/microscope?run=one&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    monkeypatch.setattr("chainrule.inspect.ablation", slow)
    page.click("text=Try without each head")
    page.wait_for_selector(".progress >> text=without the heads of block")
    page.click('#nav a[href="/runs"]')  # nothing else is held up, and leaving cancels it
    page.wait_for_selector('tr[data-run="one"]')
    assert ended.wait(15)
    ended.clear()
    page.goto(f"/microscope?run=one&text={TEXT}")
    page.wait_for_selector("[data-parameters]")
    page.click("text=Try without each head")
    page.click(".progress >> text=Cancel")
    page.wait_for_selector("text=Canceled. Change something to start again.")
    assert ended.wait(15)


def test_the_table_of_an_n_gram(page: Any, fits: Any, runs: Path, families: str) -> None:
    page.goto(f"/microscope?run={families}/ngram&text={TEXT}&at=4")
    page.wait_for_selector("[data-sum]")
    model, tokenizer = cr.load(runs / families / "ngram")
    seen = cr.inspect.view(model, cr.text.prompt_ids(tokenizer, TEXT))
    page.locator('[aria-label="Tokens"] .token').nth(6).click()
    first = float(seen.logits[6].max())
    page.wait_for_selector(f'[data-sum] [data-value="{first!r}"]')
    assert of(page, "[data-sum] [data-value]") == [float(seen.logits[6, id]) for id, _ in seen.top(8)[6]]
    fits()
