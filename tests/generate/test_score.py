"""Log-probabilities of texts: those of a forward pass, and of generation where the context is too short."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.errors import ConfigError, DataError
from chainrule.generate import Request, Sampling, compare, run, score
from chainrule.generate.session import session
from chainrule.models import NGram
from chainrule.text import BPETokenizer, CharTokenizer
from tests.generate.test_requests import KINDS, V, model_of


@pytest.mark.parametrize("n", [2, 5, 7, 8, 9, 30])
@pytest.mark.parametrize("name", KINDS)
def test_a_score_is_what_a_session_says_token_by_token(name: str, n: int) -> None:
    model = model_of(name)
    ids = np.random.default_rng(n).integers(V, size=n)
    texts = session(model)
    told = [texts.read([[int(token)]])[0] for token in ids[:-1]]
    want = [ops.log_softmax(row)[token] for row, token in zip(told, ids[1:], strict=True)]
    np.testing.assert_allclose(score(model, ids), want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n", [2, 7, 30])
@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_a_score_by_the_weights_that_write(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["chainrule.generate.score"], "LOGITS", 4)  # the name is a function too
    model = model_of(name)
    ids = np.random.default_rng(n).integers(V, size=n)
    texts = session(model, "int4")
    told = [texts.read([[int(token)]])[0] for token in ids[:-1]]
    want = [ops.log_softmax(row)[token] for row, token in zip(told, ids[1:], strict=True)]
    found = score(model, ids, weights="int4")
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-5)
    assert np.abs(found - score(model, ids)).max() > 1e-4


@pytest.mark.parametrize("name", KINDS)
def test_the_log_probabilities_of_what_was_written_are_its_score(name: str) -> None:
    model = model_of(name)
    request = Request([3, 1], Sampling(max_new_tokens=5, temperature=1.0, top_k=3), V, scored=True)
    list(run(session(model), [request]))
    assert request.logprobs is not None
    np.testing.assert_allclose(score(model, [3, 1, *request.tokens])[1:], request.logprobs, rtol=0, atol=1e-5)


def test_scores_are_without_dropout_and_leave_the_mode_alone() -> None:
    config = cr.models.GPTConfig(n_layer=1, n_head=1, n_embd=8, block_size=8, vocab_size=5, dropout=0.5)
    model = cr.models.GPT(config).train()
    assert (score(model, [1, 2, 3]) == score(model, [1, 2, 3])).all() and model.training
    assert score(model, [1]).shape == (0,)
    with pytest.raises(DataError, match="token 5"):
        score(model, [5])
    with pytest.raises(ConfigError, match="got Linear"):
        score(cr.nn.Linear(2, 2), [1])  # type: ignore[arg-type]


def test_a_format_that_would_be_ignored_is_refused() -> None:
    """As a session refuses it: a forward pass has no cache, and counts have no formats."""
    counts = NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4)
    with pytest.raises(ConfigError, match=r"cache is 'int8' without weights \(must be fp32"):
        score(model_of("gpt"), [1, 2], cache="int8")
    for options in ({"weights": "nope"}, {"weights": "int8"}, {"cache": "int8"}):
        with pytest.raises(ConfigError, match="must be fp32"):
            score(counts, [2, 3], **options)
    assert (score(counts, [2, 3, 1], weights="stored") == score(counts, [2, 3, 1])).all()


def test_candidates_by_total_by_token_and_by_byte() -> None:
    tokenizer = CharTokenizer("abcé")
    # After a: always b. After b: c three times of four, else a. After c: c or é.
    model = NGram.fit(
        [tokenizer.encode("abcccébcébab")], order=2, vocab_size=4, ends=cr.models.Terminals(4, None)
    )
    found = compare(model, tokenizer, "a", ["bccc", "ba", "bcé"], by="total")
    assert found[0].text == max(found, key=lambda c: c.total).text
    for measure, divisor in (
        ("total", lambda c: 1),
        ("token", lambda c: len(c.text)),
        ("byte", lambda c: len(c.text.encode())),
    ):
        ranks = compare(model, tokenizer, "a", ["bccc", "ba", "bcé"], by=measure)
        values = [sum(score(model, tokenizer.encode("a" + c.text))) / divisor(c) for c in ranks]
        assert values == sorted(values, reverse=True)
        np.testing.assert_allclose(values, [c.by(measure) for c in ranks])
    assert (
        len(
            {
                tuple(c.text for c in compare(model, tokenizer, "a", ["bccc", "ba", "bcé"], by=by))
                for by in ("total", "token")
            }
        )
        == 2
    )


def test_candidates_that_are_none() -> None:
    tokenizer = BPETokenizer.train("", 256)
    model = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=1, n_embd=8, block_size=8, vocab_size=256))
    with pytest.raises(ConfigError, match="candidate ''"):
        compare(model, tokenizer, "a", [""])
    with pytest.raises(ConfigError, match="by is 'word'"):
        compare(model, tokenizer, "a", ["b"], by="word")  # type: ignore[arg-type]
    assert len(compare(model, tokenizer, "", ["b", "longer than the context"])) == 2
