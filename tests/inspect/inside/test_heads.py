"""Scores of heads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from chainrule.errors import ConfigError
from chainrule.inspect import head_scores, view
from chainrule.inspect.inside.heads import looked_for, repeated_tokens
from tests.inspect.inside.planted import IDS, INDUCTION, PREVIOUS, planted
from tests.inspect.inside.small import small


def test_the_planted_heads_are_found() -> None:
    found = head_scores(planted(), IDS)
    assert found.best("induction")[:2] == INDUCTION and found.best("induction")[2] > 0.999
    assert found.best("previous")[:2] == PREVIOUS and found.best("previous")[2] > 0.999
    assert found.scores["induction"][0, 0] == pytest.approx(0, abs=1e-6)
    assert found.scores["first"].max() < 0.5 and found.scores["duplicate"].max() < 0.5
    json.dumps(found.to_dict())


def test_what_is_looked_for_by_hand() -> None:
    found = looked_for(np.array([[4, 7, 4, 4]]))
    assert np.argwhere(found["previous"][0]).tolist() == [[1, 0], [2, 1], [3, 2]]
    assert np.argwhere(found["first"][0]).tolist() == [[1, 0], [2, 0], [3, 0]]
    assert np.argwhere(found["duplicate"][0]).tolist() == [[2, 0], [3, 0], [3, 2]]
    assert np.argwhere(found["induction"][0]).tolist() == [[2, 1], [3, 1]]  # 3 -> 3 would be itself


@pytest.mark.parametrize(
    "name", ["gpt", "llama", "neox", "bert", "seq2seq", "t5", "prefix", "prompt", "lora"]
)
def test_scores_are_means_of_weights(name: str) -> None:
    model, _ = small(name)
    ids = np.array([[3, 5, 3, 5, 3], [1, 2, 4, 6, 8]])
    found = head_scores(model, ids)
    assert all(((rows >= 0) & (rows <= 1 + 1e-6)).all() for rows in found.scores.values())
    block = found.blocks[-1]
    pairs = [(row, row) if name in ("seq2seq", "t5") else row for row in ids]
    A = np.stack([view(model, pair).attention(block)[:, -5:, -5:] for pair in pairs])
    previous = np.mean([A[:, :, t, t - 1] for t in range(1, 5)], axis=(0, 1))
    assert np.allclose(found.scores["previous"][-1], previous, atol=1e-6)
    assert head_scores(model).scores["first"].shape == found.scores["first"].shape


def test_repeated_tokens_are_the_same_for_a_seed() -> None:
    first = repeated_tokens(50, 6, 3, seed=1)
    assert (first == repeated_tokens(50, 6, 3, seed=1)).all() and (first != repeated_tokens(50, 6, 3)).any()


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="LSTMLM has no attention"):
        head_scores(small("lstm")[0])
    with pytest.raises(ConfigError, match=r"kind 'copy' \(must be one of previous"):
        head_scores(planted(), IDS).best("copy")
    with pytest.raises(ConfigError, match="must be at least 1"):
        repeated_tokens(5, 0)
