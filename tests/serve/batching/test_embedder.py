"""Texts to vectors in small steps, and jobs that give up their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.generate import embedding as module
from chainrule.serve.api.embeddings import embedding_rows
from chainrule.serve.api.requests import EmbeddingRequest
from chainrule.serve.batching import Embedder, EmbeddingJob, Full
from chainrule.serve.models import Served
from chainrule.text import WordPieceTokenizer

WORDS = WordPieceTokenizer.train("the cat sat on the mat and the dog", 60)
BERT = cr.models.make("bert", n_layer=1, n_head=2, n_embd=16, vocab_size=WORDS.vocab_size)


def rows_of(lengths: list[int]) -> list[Any]:
    return [np.full(length, 7, np.int32) for length in lengths]


def work(embedder: Embedder) -> None:
    while embedder.busy:
        embedder.step()


def test_a_step_reads_few_tokens_but_at_least_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    embed_ids, steps = module.embed_ids, []

    def recorded(model: Any, tokenizer: Any, rows: Any) -> Any:
        steps.append([len(row) for row in rows])
        return embed_ids(model, tokenizer, rows)

    monkeypatch.setattr(module, "embed_ids", recorded)
    lengths = [300, 100, 100, 100, *[6] * 40]
    rows, found = rows_of(lengths), []
    embedder = Embedder(BERT, WORDS)
    embedder.submit(EmbeddingJob(rows, found.append))
    work(embedder)
    assert steps == [[300], [100, 100], [100, 6], [6] * 32, [6] * 7]
    np.testing.assert_allclose(found[0], embed_ids(BERT, WORDS, rows), rtol=0, atol=1e-5)


def test_a_cancelled_job_gives_up_its_place() -> None:
    embedder, told = Embedder(BERT, WORDS, queue=1), []
    first, second, third = (EmbeddingJob(rows_of([3]), told.append) for _ in range(3))
    embedder.submit(first)
    embedder.submit(second)
    with pytest.raises(Full, match="1 requests waiting, 1 more"):
        embedder.check_capacity()
    embedder.cancel(second)
    embedder.submit(third)
    embedder.cancel(first)
    work(embedder)
    assert len(told) == 1


def test_a_job_that_is_cancelled_during_its_step_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, told = Embedder(BERT, WORDS), []
    job, other = (EmbeddingJob(rows_of([3]), told.append) for _ in range(2))
    embed_ids = module.embed_ids

    def leaves(*given: Any) -> Any:
        embedder.cancel(job)
        return embed_ids(*given)

    monkeypatch.setattr(module, "embed_ids", leaves)
    embedder.submit(job)
    embedder.submit(other)
    embedder.step()
    assert not told and embedder.running == 1
    work(embedder)
    assert len(told) == 1


def test_everything_ends_when_it_fails() -> None:
    embedder, told = Embedder(BERT, WORDS), []
    embedder.submit(EmbeddingJob(rows_of([3]), told.append))
    embedder.fail(RuntimeError("end"))
    assert not embedder.busy and str(told[0]) == "end"


def test_a_full_queue_says_so_before_a_text_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served("bert", BERT, WORDS, queue=0)
    assert served.embedder is not None
    served.embedder.submit(EmbeddingJob(rows_of([3]), print))
    monkeypatch.setattr(WordPieceTokenizer, "encode", lambda *given: pytest.fail("encoded"))
    with pytest.raises(Full):
        embedding_rows(EmbeddingRequest(input="the cat"), served)
