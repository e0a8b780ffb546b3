"""Guesses are used only if they are right: how many are right is another matter."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule import native
from chainrule.errors import ConfigError
from chainrule.generate import Sampling
from chainrule.serve.batching import Batcher, caches_of, drafts
from chainrule.serve.batching.drafts import DraftModel, NgramLookup, looked_up
from tests.serve.batching.test_batcher import Breaks, V, alone, asked, cached, work
from tests.serve.conftest import writing_model


def test_what_followed_before_is_looked_up() -> None:
    assert looked_up([1, 2, 3, 4, 5, 2, 3], 4) == [4, 5, 2, 3]
    assert looked_up([1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3], 1) == [8]  # the newest
    assert looked_up([9, 1, 2, 7, 1, 2, 5, 9, 1, 2], 1) == [7]  # the longest first
    assert looked_up([1, 2, 3], 4) == looked_up([1], 4) == looked_up([1, 2, 1, 2], 0) == []


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_that_is_the_model_is_always_right(temperature: float) -> None:
    """Also when tokens are drawn: both draw at a position with the same random number."""
    model = cached("llama")
    draft = DraftModel(caches_of(model, slots=2), V, guesses=2)
    batcher = Batcher(caches_of(model, slots=2), drafter=draft)
    several = [asked([1, 2], Sampling(max_new_tokens=5, temperature=temperature, seed=i)) for i in range(3)]
    batcher.submit([each.job for each in several])
    work(batcher)
    assert batcher.counters.accepted == batcher.counters.drafted > 0
    for each in several:
        assert each.tokens == alone(model, each.job.request).tokens


def test_a_draft_that_fails_leaves_the_texts_alone() -> None:
    model = cached("llama")
    draft = DraftModel(Breaks(caches_of(model, slots=1), token=3), V)
    batcher = Batcher(caches_of(model, slots=1), drafter=draft)
    for prompt in ([1, 3], [1, 2]):
        each = asked(prompt, Sampling(max_new_tokens=4, temperature=0, logit_bias={3: -1e6}))
        batcher.submit([each.job])
        work(batcher)
        assert each.tokens == alone(model, each.job.request).tokens
        assert (batcher.counters.drafted > 0) == (prompt == [1, 2])


def test_guesses_save_steps() -> None:
    """A text that repeats itself is written by half as many passes."""
    model = cached("gpt")
    forced = Sampling(max_new_tokens=5, temperature=0, logit_bias={7: 1000.0})
    steps = []
    for drafter in (None, NgramLookup()):
        batcher = Batcher(caches_of(model, slots=1), drafter=drafter)
        each = asked([7, 7], forced)
        batcher.submit([each.job])
        work(batcher)
        assert each.tokens == [7] * 5
        steps.append(batcher.counters.steps)
    assert steps[1] <= steps[0] // 2 + 1


def test_a_draft_needs_the_same_tokens_and_a_cache_that_goes_back() -> None:
    with pytest.raises(ConfigError, match="draft of 11 tokens, model of 12"):
        DraftModel(caches_of(cached("gpt")), 12)
    with pytest.raises(ConfigError, match="must be a transformer"):
        DraftModel(caches_of(cached("lstm")), V)


def test_no_more_is_guessed_than_may_be_written() -> None:
    job = asked([1, 2, 1, 2], Sampling(max_new_tokens=2)).job
    assert NgramLookup(4).guess([(0, job)]) == [[1]]


class Recorded:
    """Caches that remember how many tokens they have read at a time."""

    def __init__(self, caches: Any) -> None:
        self.caches, self.reads = caches, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.caches, name)

    def read(self, pieces: Any, slots: Any, every: Any) -> Any:
        self.reads.append(sum(map(len, pieces)))
        return self.caches.read(pieces, slots, every)


def test_a_text_beyond_the_context_of_the_draft_takes_guesses_from_no_other() -> None:
    model = writing_model(V, context=64)
    batcher = Batcher(caches_of(model, slots=2), drafter=DraftModel(caches_of(cached("gpt"), slots=2), V))
    long = asked([1] * 20, Sampling(max_new_tokens=30))
    batcher.submit([long.job])
    for _ in range(4):
        batcher.step()
    assert batcher.counters.drafted == 0
    short = asked([1, 2], Sampling(max_new_tokens=5))
    batcher.submit([short.job])
    work(batcher)
    assert batcher.counters.drafted > 0
    for each in (long, short):
        assert each.tokens == alone(model, each.job.request).tokens


def test_a_draft_reads_a_long_prompt_in_parts() -> None:
    """As the model does, so that no stream waits for it; there are guesses once it has read all."""
    model = writing_model(V, context=512)
    recorded = Recorded(caches_of(model, slots=2))
    batcher = Batcher(caches_of(model, slots=2), drafter=DraftModel(recorded, V))
    several = [asked([i] * 200, Sampling(max_new_tokens=40, temperature=0)) for i in (1, 2)]
    batcher.submit([each.job for each in several])
    work(batcher)
    assert max(recorded.reads) == drafts.ROWS and batcher.counters.accepted > 0
    for each in several:
        assert each.tokens == alone(model, each.job.request).tokens


@pytest.mark.skipif(not native.available(), reason="the extension was not built")
def test_a_draft_whose_caches_are_full_forgets_texts_that_are_over_first() -> None:
    model = writing_model(V, context=512)
    page = caches_of(model).decoder.pages
    draft = DraftModel(caches_of(model, slots=2, cache_memory=2 * page.bytes), V)
    batcher = Batcher(caches_of(model, slots=2), drafter=draft)
    sampling = Sampling(max_new_tokens=30, temperature=0)
    for together in ([[1] * 60], [[2] * 60], [[3] * 90, [4] * 90]):
        before = batcher.counters.accepted
        several = [asked(prompt, sampling) for prompt in together]
        batcher.submit([each.job for each in several])
        work(batcher)
        assert batcher.counters.accepted > before
        for each in several:
            assert each.tokens == alone(model, each.job.request).tokens


@pytest.mark.skipif(not native.available(), reason="the extension was not built")
def test_a_draft_whose_caches_are_full_goes_on_with_the_text_that_it_knows_best() -> None:
    """A page for each of two texts, which both need a second one."""
    model = writing_model(V, context=512)
    page = caches_of(model).decoder.pages
    draft = DraftModel(caches_of(model, slots=2, cache_memory=2 * page.bytes), V)
    batcher = Batcher(caches_of(model, slots=2), drafter=draft)
    several = [asked([i] * (page.positions - 14), Sampling(max_new_tokens=60, temperature=0)) for i in (1, 2)]
    batcher.submit([each.job for each in several])
    work(batcher)
    assert batcher.counters.accepted > 2 * 14
    for each in several:
        assert each.tokens == alone(model, each.job.request).tokens
