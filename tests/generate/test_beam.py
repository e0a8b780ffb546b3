"""Beam search: exhaustive when wide enough, greedy when narrow, the same alone and beside others, for every family."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from chainrule.errors import ConfigError
from chainrule.generate import Beam, beam_search, generate, score, search
from chainrule.generate.session import session
from tests.generate.test_requests import KINDS, PROMPTS, V, model_of


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("name", ["gpt", "gru", "trigram"])
def test_wide_enough_it_finds_the_best_of_all_texts(name: str, alpha: float) -> None:
    model, end, most = model_of(name), 4, 2
    others = [token for token in range(V) if token != end]
    finished = [(*text, end) for n in range(most) for text in product(others, repeat=n)]
    cut = list(product(others, repeat=most))
    value = {
        text: score(model, [3, *text]).sum() / ((5 + len(text)) / 6) ** alpha for text in (*finished, *cut)
    }
    want = sorted(value.values(), reverse=True)[:5]
    found = beam_search(
        model, [3], width=V**2, n_best=5, length_penalty=alpha, max_new_tokens=most, stop_tokens=(end,)
    )
    np.testing.assert_allclose([h.score for h in found], want, atol=1e-5)
    for h in found:
        text = (*h.tokens, end) if h.finished else h.tokens
        assert value[text] == pytest.approx(h.score, abs=1e-5)
        assert h.logprob == pytest.approx(score(model, [3, *text]).sum(), abs=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_one_wide_it_is_greedy(name: str) -> None:
    model = model_of(name)
    greedy = generate(model, [3, 1], 12, temperature=0).tolist()
    (found,) = beam_search(model, [3, 1], width=1, max_new_tokens=12)
    assert list(found.tokens) == greedy and not found.finished
    end = greedy[5]
    (found,) = beam_search(model, [3, 1], width=1, max_new_tokens=12, stop_tokens=(end,))
    assert list(found.tokens) == greedy[: greedy.index(end)] and found.finished


@pytest.mark.parametrize("name", KINDS)
def test_side_by_side_each_finds_what_it_finds_alone(name: str) -> None:
    model, beam = model_of(name), Beam(width=3, n_best=3, max_new_tokens=9, stop_tokens=(4, 7))
    together = search(session(model, batch=3 * len(PROMPTS)), PROMPTS, beam)
    for ids, found in zip(PROMPTS, together, strict=True):
        alone = beam_search(model, ids, beam)
        assert [h.tokens for h in found] == [h.tokens for h in alone]
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert all(not {4, 7} & set(h.tokens) and len(h.tokens) <= 9 for h in found)


def test_a_wider_beam_finds_what_greedy_misses() -> None:
    """P(a) = 0.6, then two even ways; P(b) = 0.4, then one sure way: b is the likelier text."""

    class Tree:
        def __init__(self) -> None:
            self.last: list[int] = []

        def read(self, tokens: Any) -> Any:
            self.last = [int(piece[-1]) for piece in tokens]
            p = {0: [0, 0.6, 0.4, 0], 1: [0.5, 0, 0, 0.5], 2: [0, 0, 0, 1.0]}
            with np.errstate(divide="ignore"):
                return np.log(np.array([p[last] for last in self.last]))

        def keep(self, rows: Any) -> None:
            self.last = [self.last[row] for row in rows]

    ((narrow,),) = search(Tree(), [[0]], Beam(width=1, max_new_tokens=2))
    ((wide,),) = search(Tree(), [[0]], Beam(width=2, max_new_tokens=2))
    assert narrow.tokens[0] == 1 and wide.tokens == (2, 3)
    assert wide.logprob == pytest.approx(np.log(0.4))


def test_nothing_to_write_is_the_empty_text() -> None:
    (found,) = beam_search(model_of("gpt"), [3], max_new_tokens=0)
    assert found.tokens == () and found.logprob == 0 and not found.finished


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "beam: width is 0"),
        ({"width": 1001}, r"beam: width is 1001 \(must be an integer, from 1 to 1000\)"),
        ({"n_best": 5}, r"n_best is 5 \(must be an integer, from 1 to 4\)"),
        ({"max_new_tokens": -1}, "max_new_tokens is -1"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"stop_tokens": (V,)}, f"stop_tokens has token {V}"),
        ({"stop_tokens": (0, -1)}, "stop_tokens has token -1"),
    ],
)
def test_impossible_searches_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        beam_search(model_of("gpt"), [3], **options)


@pytest.mark.parametrize("end", [0, V - 1])
def test_the_first_and_the_last_token_may_stop_it(end: int) -> None:
    (found,) = beam_search(model_of("gpt"), [3], width=V, max_new_tokens=3, stop_tokens=(end,))
    assert end not in found.tokens


def test_who_watches_sees_the_texts_that_are_kept() -> None:
    seen: list[list[tuple[int, ...]]] = []
    found = beam_search(
        model_of("gpt"), [3], width=3, n_best=3, max_new_tokens=4,
        watch=lambda searches: seen.append([text for text, _ in searches[0].live]),
    )  # fmt: skip
    assert [{len(text) for text in step} for step in seen] == [{1}, {2}, {3}, {4}]
    assert {each.tokens for each in found} == {*seen[-1]}
    for before, after in pairwise(seen):
        assert {text[:-1] for text in after} <= {*before}
