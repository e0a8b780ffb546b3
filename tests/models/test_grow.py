"""Models with more tokens: what they knew stays as it was, and new rows are as likely as any other."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.models import LanguageModel, with_tokens
from tests.models.tiny import tiny

IDS = np.array([[3, 1, 4, 1, 5]])


@pytest.mark.parametrize("family", ["gpt", "llama", "neox"])  # the first two tied, the last not
def test_old_tokens_score_as_before(family: str) -> None:
    model = tiny(family)
    grown = with_tokens(model, 15, added=4, seed=3)
    assert grown.config.vocab_size == 15
    with cr.autograd.no_grad():
        before, after = model.eval()(IDS).numpy(), grown.eval()(IDS).numpy()
    assert np.array_equal(after[..., :11], before)
    for weight in (grown.embedding.weight, grown.head.weight):
        old, new = weight.numpy()[:11], weight.numpy()[11:]
        away = [np.linalg.norm(rows - old.mean(axis=0), axis=1) for rows in (old, new)]
        assert (
            away[0].min() / 2 < away[1].min() and away[1].max() < 2 * away[0].max()
        )  # as far as the old ones
        assert len(np.unique(new, axis=0)) == 4  # and all different


@pytest.mark.parametrize("family", ["gpt", "llama", "neox"])
def test_all_but_the_tables_may_be_those_of_the_model_itself(family: str) -> None:
    model = tiny(family)
    grown, copied = (with_tokens(model, 15, added=4, seed=3, shared=shared) for shared in (True, False))
    theirs = dict(model.named_parameters())
    for (name, param), (_, other) in zip(grown.named_parameters(), copied.named_parameters(), strict=True):
        np.testing.assert_array_equal(param.array, other.array)
        assert (param is theirs[name]) == (len(param.array) != 15), name


def test_new_rows_are_a_function_of_the_seed() -> None:
    one, same, other = (
        with_tokens(tiny("neox"), 13, added=2, seed=seed).embedding.weight.numpy() for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert np.array_equal(one[:11], other[:11]) and not np.array_equal(one[11:], other[11:])


def test_spare_rows_are_used_before_the_model_grows() -> None:
    model = tiny("gpt", vocab_size=16)
    grown = with_tokens(model, 13, added=2)
    assert grown.config.vocab_size == 16
    before, after = (each.embedding.weight.numpy() for each in (model, grown))
    kept = [*range(11), 13, 14, 15]
    assert np.array_equal(before[kept], after[kept]) and not np.array_equal(before[11:13], after[11:13])


@pytest.mark.parametrize(
    ("model", "tokens", "said"),
    [
        (tiny("lstm"), 12, "LSTMLM: takes no new tokens (must be a transformer that writes"),
        (tiny("gpt"), 14, "12 were known, the model has 11 rows"),
    ],
)
def test_what_cannot_grow_is_refused(model: LanguageModel, tokens: int, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        with_tokens(model, tokens, added=2)
    assert said in str(error.value)
