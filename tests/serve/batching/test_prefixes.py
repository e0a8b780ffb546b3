"""What several texts share is read once, and texts are compared when they begin."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from chainrule.generate import Sampling
from chainrule.serve.batching import Batcher, caches_of, prefixes
from chainrule.serve.batching.prefixes import common
from tests.serve.batching.test_batcher import V, alone, asked, work
from tests.serve.conftest import writing_model

LONG = [i % V for i in range(400)]


def test_how_much_two_texts_have_in_common() -> None:
    others: tuple[list[int], ...] = ([], [1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 9, 3], [2])
    assert [common(array("i", [1, 2, 3]), array("i", other)) for other in others] == [0, 2, 3, 3, 1, 0]


def test_texts_are_compared_when_they_begin_and_not_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counted(a: Any, b: Any) -> int:
        nonlocal compared
        compared += 1
        return common(a, b)

    monkeypatch.setattr(prefixes, "common", counted)
    batcher = Batcher(caches_of(writing_model(V, context=512), slots=4))
    unlike = [asked([i, *LONG], Sampling(max_new_tokens=30)) for i in range(4)]
    batcher.submit([each.job for each in unlike])
    batcher.step()
    begun, compared = compared, 0
    work(batcher)
    assert begun > 0 and compared == 0


@pytest.mark.parametrize("leaves", [None, 0, 1])
def test_who_follows_reads_on_when_the_other_leaves(leaves: int | None) -> None:
    """Also when two follow each other: the last copies what was read, and reads the rest."""
    model = writing_model(V, context=512)
    batcher = Batcher(caches_of(model, slots=3))
    texts = [LONG, [*LONG[:350], 1, 2], [*LONG[:350], 1, 2, 3]]
    several = [asked(text, Sampling(max_new_tokens=4, seed=i)) for i, text in enumerate(texts)]
    batcher.submit([each.job for each in several])
    batcher.step()
    assert batcher.counters.prompt_tokens == 256  # the first reads, the others wait
    if leaves is not None:
        batcher.cancel(several[leaves].job)
    work(batcher)
    unread = {None: 400 + 2 + 1, 0: 256 + 352 - 256 + 1, 1: 400 + 3}[leaves]
    assert batcher.counters.prompt_tokens == unread
    for i, each in enumerate(several):
        if i != leaves:
            assert each.tokens == alone(model, each.job.request).tokens


def test_ids_of_a_job_are_one_list_that_grows() -> None:
    batcher = Batcher(caches_of(writing_model(V, context=512), slots=1))
    each = asked(LONG, Sampling(max_new_tokens=5))
    before = each.job.ids
    batcher.submit([each.job])
    work(batcher)
    assert each.job.ids is before and before.tolist() == LONG + each.tokens
