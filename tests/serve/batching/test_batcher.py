"""Continuous batching: a request gives the same tokens alone and in any company, and no request harms another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import CacheFull, ChainruleError
from chainrule.generate import Request, Sampling, run, session
from chainrule.generate.requests import token_score
from chainrule.serve.batching import Batcher, Full, Job, Update, caches_of, prefixes
from chainrule.serve.batching import batcher as batching
from chainrule.serve.batching.drafts import DraftModel, NgramLookup
from tests.generate.test_requests import model_of
from tests.serve.conftest import writing_model

V = 11
CONTEXT = 7  # of the tiny models
SLOTS = 3


@dataclass
class Asked:
    """A job and what it has told."""

    job: Job
    updates: list[Update] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        return [token for update in self.updates for token in update.tokens]


def asked(
    prompt: Sequence[int], sampling: Sampling | None = None, top_of_prompt: int | None = None, **options: Any
) -> Asked:
    updates: list[Update] = []
    request = Request(prompt, sampling or Sampling(max_new_tokens=3), V, **options)
    return Asked(Job(request, updates.append, top_of_prompt=top_of_prompt), updates)


def alone(model: Any, request: Request) -> Request:
    """The same request by itself, through the loop of `chainrule sample`."""
    again = Request(request.prompt, request.sampling, V)
    for _ in run(session(model), [again]):
        pass
    return again


def work(batcher: Batcher, until: Callable[[], bool] = lambda: False) -> None:
    steps = 0
    while batcher.busy and not until():
        batcher.step()
        steps += 1
        assert steps < 1000


cached = cache(model_of)

REQUEST = st.tuples(
    st.lists(st.integers(0, V - 1), min_size=1, max_size=CONTEXT - 1),
    st.floats(0, 2),
    st.integers(0, 3),  # of the seed
    st.integers(0, 20),  # of the step at which it comes
    st.booleans(),  # whether its prompt is scored
)


KINDS = [
    ("gpt", None),
    ("gpt", "lookup"),
    ("llama", "model"),
    ("lstm", None),
    ("bigram", None),
    ("mlp", None),
]


@pytest.mark.parametrize(("name", "drafted"), KINDS)
@settings(max_examples=10)
@given(requests=st.lists(REQUEST, min_size=1, max_size=9), rows=st.integers(1, 8))
def test_any_company_leaves_a_request_its_tokens(
    name: str, drafted: str | None, requests: list[Any], rows: int
) -> None:
    model = cached(name)
    caches = caches_of(model, slots=SLOTS)
    drafts = {
        "lookup": NgramLookup,
        "model": lambda: DraftModel(caches_of(cached("gpt"), slots=SLOTS), V, guesses=3),
    }
    batcher = Batcher(caches, drafter=drafts[drafted]() if drafted else None)
    found = [
        (
            when,
            asked(
                prompt,
                Sampling(max_new_tokens=CONTEXT - len(prompt), temperature=t, seed=seed, stop_tokens=(4,)),
                2 if scored else None,
            ),
        )
        for prompt, t, seed, when, scored in requests
    ]
    with pytest.MonkeyPatch.context() as patch:
        for constant in ("ROWS", "ROWS_ALONE"):
            patch.setattr(batching, constant, rows)
        patch.setattr(prefixes, "LEAST_SHARED", 2)
        for step in range(21):
            batcher.submit([each.job for when, each in found if when == step])
            if batcher.busy:
                batcher.step()
        work(batcher)
    for _, each in found:
        again = alone(model, each.job.request)
        assert each.tokens == again.tokens
        assert [update.last for update in each.updates] == [False] * (len(each.updates) - 1) + [True]
        assert each.updates[-1].finish == again.finish
        if each.job.top_of_prompt is not None:
            scores = [score for update in each.updates for score in update.prompt_scores]
            texts = session(model)
            rows_of = [texts.read([[token]])[0] for token in each.job.request.prompt]
            expected = [
                token_score(row, t, 2) for row, t in zip(rows_of, each.job.request.prompt[1:], strict=False)
            ]
            assert scores == expected
    assert batcher.running == batcher.waiting == 0


def test_more_than_fits_is_refused_as_a_whole() -> None:
    batcher = Batcher(caches_of(cached("gpt"), slots=2), queue=1)
    first = [asked([1]) for _ in range(2)]
    batcher.submit([each.job for each in first])
    with pytest.raises(Full, match=r"0 requests at work and 2 waiting, 2 more \(must be at most 3"):
        batcher.submit([asked([1]).job for _ in range(2)])
    batcher.submit([asked([2]).job])
    work(batcher)
    assert all(each.updates[-1].finish for each in first)


def test_a_cancelled_job_leaves_its_slot_and_the_queue() -> None:
    batcher = Batcher(caches_of(cached("gpt"), slots=1))
    first, second, third = (asked([1, 2]) for _ in range(3))
    batcher.submit([each.job for each in (first, second, third)])
    batcher.step()
    batcher.cancel(first.job)
    batcher.cancel(second.job)
    assert batcher.running == 1 and batcher.waiting == 1
    work(batcher)
    assert len(first.updates) == 1 and not second.updates and third.updates[-1].finish


def test_a_known_beginning_is_not_read_again() -> None:
    model = cached("gpt")
    batcher = Batcher(caches_of(model, slots=2))
    first = asked([1, 2, 3, 4, 5], Sampling(max_new_tokens=1, temperature=0))
    batcher.submit([first.job])
    work(batcher)
    longer = asked([1, 2, 3, 4, 6], Sampling(max_new_tokens=1, temperature=0))
    same = asked([1, 2, 3, 4, 5], Sampling(max_new_tokens=1, temperature=0))
    for each in (longer, same):
        batcher.submit([each.job])
        work(batcher)
    assert (longer.job.reused, batcher.counters.prompt_tokens) == (4, 5 + 1 + 1)
    assert same.tokens == first.tokens == alone(model, first.job.request).tokens


def test_texts_with_one_prompt_read_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "LEAST_SHARED", 2)
    monkeypatch.setattr(batching, "ROWS_ALONE", 3)
    batcher = Batcher(caches_of(cached("gpt"), slots=3))
    several = [asked([1, 2, 3, 4, 5, 6], Sampling(max_new_tokens=1, seed=i)) for i in range(3)]
    batcher.submit([each.job for each in several])
    work(batcher)
    assert batcher.counters.prompt_tokens == 6 + 1 + 1
    for each in several:
        assert each.tokens == alone(cached("gpt"), each.job.request).tokens


class Breaks:
    """Caches that cannot read one token."""

    def __init__(self, caches: Any, token: int) -> None:
        self.caches, self.token = caches, token

    def __getattr__(self, name: str) -> Any:
        return getattr(self.caches, name)

    def read(self, pieces: Any, slots: Any, every: Any) -> Any:
        found = self.caches.read(pieces, slots, every)
        if any(self.token in piece for piece in pieces):
            raise FloatingPointError(self.token)
        return found


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_one_that_fails_harms_no_other(name: str) -> None:
    """Though the caches have read it before they fail."""
    model = cached(name)
    batcher = Batcher(Breaks(caches_of(model, slots=3), token=10))
    sampling = Sampling(max_new_tokens=4, temperature=0, logit_bias={10: -1e6})
    good, bad, scored = asked([1, 2], sampling), asked([3, 10], sampling), asked([5, 6, 7], sampling, 1)
    batcher.submit([good.job, bad.job, scored.job])
    work(batcher)
    for each in (good, scored):
        assert each.tokens == alone(model, each.job.request).tokens
    assert len(scored.updates[0].prompt_scores) == 2
    assert isinstance(bad.updates[-1].error, FloatingPointError) and not bad.tokens
    again = asked([1, 2], sampling)
    batcher.submit([again.job])
    work(batcher)
    assert again.tokens == good.tokens


def tight(slots: int, pages: int) -> Any:
    """A model with a longer context, caches that hold so many pages, and the tokens of a page."""
    model = writing_model(V, context=512)
    page = caches_of(model, slots=slots).decoder.pages
    return model, caches_of(model, slots=slots, cache_memory=pages * page.bytes), page.positions


def test_full_caches_let_the_last_wait_and_change_no_text() -> None:
    model, caches, page = tight(3, 4)
    batcher = Batcher(caches)
    several = [
        asked([i + 1] * (page // 2), Sampling(max_new_tokens=2 * page, seed=i), 1 if i == 2 else None)
        for i in range(4)
    ]
    batcher.submit([each.job for each in several])
    most = 0
    while batcher.busy:
        batcher.step()
        most = max(most, caches.decoder.pages.held)
    assert most == 4
    assert batcher.counters.prompt_tokens > 4 * (page // 2)  # one was read again
    for each in several:
        assert each.updates[-1].finish and each.tokens == alone(model, each.job.request).tokens


def test_one_that_never_fits_is_refused_before_it_harms_others() -> None:
    model, caches, page = tight(2, 2)
    batcher = Batcher(caches)
    fits = asked([1] * page, Sampling(max_new_tokens=page + 1))
    batcher.submit([fits.job])
    for prompt, new in ((page, page + 2), (2 * page + 1, 0)):
        large = asked([2] * prompt, Sampling(max_new_tokens=new))
        with pytest.raises(
            ChainruleError, match=rf"a text of {2 * page + 1} tokens \(must be at most {2 * page}"
        ):
            batcher.submit([large.job])
    work(batcher)
    assert fits.tokens == alone(model, fits.job.request).tokens and len(fits.tokens) == page + 1


class Crowded:
    """Caches that are full when they are to read more than one text."""

    def __init__(self, caches: Any, full: Callable[[], None] = lambda: None, most: int = 1) -> None:
        self.caches, self.full, self.most = caches, full, most

    def __getattr__(self, name: str) -> Any:
        return getattr(self.caches, name)

    def read(self, pieces: Any, slots: Any, every: Any) -> Any:
        if len(pieces) > self.most:
            self.full()
            raise CacheFull("full")
        return self.caches.read(pieces, slots, every)


def test_a_job_that_is_cancelled_while_it_is_put_back_is_gone() -> None:
    """Its client leaves during the step in which the caches are found to be full."""
    first, last = asked([1, 2]), asked([3, 4])
    caches = Crowded(caches_of(cached("gpt"), slots=2), lambda: batcher.cancel(last.job))
    batcher = Batcher(caches)
    batcher.submit([first.job])
    batcher.submit([last.job])
    batcher.step()
    assert (batcher.running, batcher.waiting) == (1, 0)
    work(batcher)
    assert first.updates[-1].finish and not last.updates


def test_a_job_that_is_cancelled_while_a_slot_is_chosen_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    batcher = Batcher(caches_of(cached("gpt"), slots=2))
    first, last = asked([1, 2]), asked([3, 4])
    best = prefixes.Prefixes.best

    def leaves(self: Any, free: Any, job: Job) -> Any:
        if job is last.job:
            batcher.cancel(job)
        return best(self, free, job)

    monkeypatch.setattr(prefixes.Prefixes, "best", leaves)
    batcher.submit([last.job, first.job])
    batcher.step()
    assert (batcher.running, batcher.waiting) == (1, 0)
    work(batcher)
    assert first.updates[-1].finish and not last.updates


def test_what_does_not_fit_alone_ends_with_an_error() -> None:
    batcher = Batcher(Crowded(caches_of(cached("gpt"), slots=1), most=0))
    each = asked([1, 2])
    batcher.submit([each.job])
    work(batcher)
    assert isinstance(each.updates[-1].error, CacheFull)


def test_requests_take_turns() -> None:
    """One that asks for many texts does not keep another waiting until all of them are written."""
    batcher = Batcher(caches_of(cached("gpt"), slots=1))
    ended: list[str] = []

    def job(name: str) -> Job:
        request = Request([1, 2], Sampling(max_new_tokens=1), V)
        return Job(request, lambda update: ended.append(name) if update.last else None)

    many, two = [job("many") for _ in range(5)], [job("two") for _ in range(2)]
    batcher.submit(many)
    batcher.submit(two)
    batcher.submit([job("one")])
    batcher.cancel(many[3])
    work(batcher)
    assert ended == ["many", "two", "one", "many", "two", "many", "many"]


def test_logits_that_rule_out_everything_fail_their_request_alone() -> None:
    batcher = Batcher(caches_of(cached("gpt"), slots=2))
    nothing = asked([1], Sampling(max_new_tokens=2, logit_bias=dict.fromkeys(range(V), -np.inf)))
    good = asked([1])
    batcher.submit([nothing.job, good.job])
    work(batcher)
    assert isinstance(nothing.updates[-1].error, ChainruleError) and good.updates[-1].finish


def test_everything_ends_when_the_batcher_fails() -> None:
    batcher = Batcher(caches_of(cached("gpt"), slots=1))
    several = [asked([1]) for _ in range(3)]
    batcher.submit([each.job for each in several])
    batcher.step()
    batcher.fail(RuntimeError("end"))
    assert not batcher.busy and all(str(each.updates[-1].error) == "end" for each in several)
