"""A bag of words, taken apart: its terms sum to what the model says."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.inspect.bag import BagView
from chainrule.tasks.labeled.bag_of_words import features_of

TOKENS = [4, 7, 4, 4, 7, 1]


@pytest.fixture(params=["tfidf", "counts", "binary"])
def model(request: pytest.FixtureRequest) -> cr.models.BagOfWords:
    """With random weights; few buckets, so that runs share some."""
    rng = np.random.default_rng(0)
    sizes = {"ngrams": 3, "buckets": 5, "vocab_size": 10, "classes": 3}
    made = cr.models.BagOfWords(cr.models.BagOfWordsConfig(weighting=request.param, **sizes))
    made.bag.weight.array[...] = rng.normal(size=made.bag.weight.shape)
    made.bias.array[...] = rng.normal(size=3)
    made.bag.count_texts([np.array([4, 7]), np.array([1]), np.array([4])])
    return made


def test_terms_and_tokens_sum_to_the_logits(model: cr.models.BagOfWords) -> None:
    seen = BagView(model, TOKENS)
    logits = model(*features_of(model).bag([TOKENS])).numpy()[0]
    assert np.allclose(seen.bias + np.sum([term.adds for term in seen.terms], axis=0), logits, atol=1e-5)
    assert np.allclose(seen.bias + seen.by_token.sum(axis=0), logits, atol=1e-5)
    assert np.allclose(seen.logprobs, logits - np.log(np.exp(logits).sum()), atol=1e-5)


def test_a_term_is_named_by_its_first_run(model: cr.models.BagOfWords) -> None:
    terms = BagView(model, TOKENS).terms
    assert [(term.tokens, term.count) for term in terms[:3]] == [((4,), 3), ((7,), 2), ((1,), 1)]
    assert sum(term.count for term in terms) == 6 + 5 + 4  # words, pairs, triples
    assert all(len(term.tokens) > 1 for term in terms[3:])


def test_without_a_token_is_the_text_that_lacks_it(model: cr.models.BagOfWords) -> None:
    seen = BagView(model, TOKENS)
    for at in range(len(TOKENS)):
        other = BagView(model, TOKENS[:at] + TOKENS[at + 1 :])
        assert np.allclose(seen.without[at], other.logprobs, atol=1e-5)
    alone = BagView(model, [3]).without[0]
    assert np.allclose(alone, seen.bias - np.log(np.exp(seen.bias).sum()), atol=1e-5)


@pytest.mark.parametrize("tokens", [[], [[1, 2]]])
def test_what_is_no_text_is_refused(model: cr.models.BagOfWords, tokens: list) -> None:
    with pytest.raises(cr.ConfigError, match=r"must be a bag of words and the tokens \(T,\) of a text"):
        BagView(model, tokens)
