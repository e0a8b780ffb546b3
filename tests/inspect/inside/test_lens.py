"""The logit lens."""

from __future__ import annotations

import json

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.inspect import lens_of, logit_lens, view
from chainrule.inspect.inside.rerun import head
from tests.inspect.inside.small import CHANGED, FAMILIES, IDS, small


@pytest.mark.parametrize("name", [name for name in (*FAMILIES, *CHANGED) if name != "mlp"])
def test_after_the_last_block_it_is_what_the_model_says(name: str) -> None:
    seen = view(*small(name))
    found = logit_lens(*small(name), top=2)
    assert lens_of(seen, top=2).top == found.top
    assert np.allclose(found.loss[-1], seen.loss, atol=1e-5, equal_nan=True)
    assert (found.rank[-1] == seen.rank).all()
    assert found.top[-1] == seen.top(2)
    assert np.allclose(head(seen.sites, seen.stream(seen.blocks[-1])[None])[0], seen.logits, atol=1e-5)
    json.dumps(found.to_dict())


def test_before_it_is_the_norm_and_the_head_of_the_stream() -> None:
    model, ids = small("gpt")
    stream = view(model, ids).stream("h.0")
    with cr.no_grad():
        logits = (model.ln_f(cr.Tensor(stream)) @ model.wte.weight.T).numpy()
    found = logit_lens(model, ids, positions=[3, -2], top=1)
    assert found.positions == [3, 3] and found.streams == ["embedding", "h.0", "h.1"]
    assert found.top[1][0][0][0] == logits[3].argmax()
    logprobs = logits[3] - np.log(np.exp(logits[3]).sum())
    assert found.probability[1, 0] == pytest.approx(np.exp(logprobs[IDS[4]]), rel=1e-4)


def test_progress_and_positions_that_are_not_there() -> None:
    model, ids = small("t5")
    calls: list[tuple[int, int]] = []
    logit_lens(model, ids, progress=lambda *done: calls.append(done))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    for wrong, message in (([3], "position 3"), ([], "must be whole numbers")):
        with pytest.raises(ConfigError, match=message):
            logit_lens(model, ids, positions=wrong)


def test_a_model_without_blocks_is_refused() -> None:
    model = cr.models.make("ngram", vocab_size=11, block_size=2)
    with pytest.raises(ConfigError, match="has no blocks before its head"):
        logit_lens(model, IDS)
