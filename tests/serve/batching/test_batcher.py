"""Continuous batching: a request gives the same tokens alone and in any company, and no request harms another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import ChainruleError
from chainrule.generate import Request, Sampling, run, session
from chainrule.generate.requests import token_score
from chainrule.serve.batching import Batcher, Full, Job, Update, caches_of
from chainrule.serve.batching import batcher as batching
from chainrule.serve.batching.batcher import common
from chainrule.serve.batching.drafts import DraftModel, NgramLookup
from tests.generate.test_requests import model_of

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


REQUEST = st.tuples(
    st.lists(st.integers(0, V - 1), min_size=1, max_size=CONTEXT - 1),
    st.floats(0, 2),
    st.integers(0, 3),  # of the seed
    st.integers(0, 20),  # of the step at which it comes
    st.booleans(),  # whether its prompt is scored
)


@pytest.mark.parametrize("drafted", [None, "lookup", "model"])
@pytest.mark.parametrize("name", ["gpt", "llama", "lstm", "bigram", "mlp"])
@settings(max_examples=12)
@given(requests=st.lists(REQUEST, min_size=1, max_size=9), rows=st.integers(1, 8))
def test_any_company_leaves_a_request_its_tokens(
    name: str, drafted: str | None, requests: list[Any], rows: int
) -> None:
    model = model_of(name)
    caches = caches_of(model, slots=SLOTS)
    if drafted and not caches.rewinds:
        return
    drafts = {
        "lookup": NgramLookup,
        "model": lambda: DraftModel(caches_of(model_of("gpt"), slots=SLOTS), V, guesses=3),
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
        patch.setattr(batching, "LEAST_SHARED", 2)
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
            expected = [token_score(row, t, 2) for row, t in zip(rows_of, each.job.request.prompt[1:])]
            assert scores == expected
    assert batcher.running == batcher.waiting == 0
