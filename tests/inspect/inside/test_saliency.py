"""Gradients of a logit with respect to the embeddings of what was read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect import input_gradient, integrated_gradients, output_gradient, view
from chainrule.inspect.inside.saliency import token_embeddings
from tests.inspect.inside.small import CHANGED, FAMILIES, IDS, small


@pytest.mark.parametrize("name", [name for name in (*FAMILIES, *CHANGED) if name != "mlp"])
def test_it_is_the_slope_of_the_logit(name: str) -> None:
    model, ids = small(name)
    model.to(np.float64)
    found = input_gradient(model, ids, 4, minus=3, position=2)
    seen = view(model, ids)
    call = list(token_embeddings(seen.sites).values())[0 if not seen.sites.source_spine else -1]
    call = token_embeddings(seen.sites).get("target", call)
    way, eps = np.random.default_rng(0).normal(size=found.gradient.shape), 1e-5

    def logit(sign: int) -> float:
        moved = view(model, ids, {call: lambda x: x + sign * eps * way}).logits[2]
        return float(moved[4] - moved[3])

    slope = (logit(1) - logit(-1)) / (2 * eps)
    assert (found.gradient * way).sum() == pytest.approx(slope, rel=1e-5, abs=1e-8)
    assert np.allclose(found.scores, (seen.value(call)[0] * found.gradient).sum(-1))
    json.dumps(found.to_dict())


def width(model: Any) -> int:
    return int(model.config.n_embd)


def test_a_causal_model_depends_on_nothing_that_comes_later() -> None:
    found = input_gradient(*small("llama"), 4, position=2)
    assert found.gradient[:3].any(axis=1).all() and not found.gradient[3:].any()


@pytest.mark.parametrize("name", ["gpt", "llama", "lstm"])
def test_integrated_gradients_sum_to_the_difference(name: str) -> None:
    model, ids = small(name)
    model.to(np.float64)
    found = integrated_gradients(model, ids, 4, minus=3, steps=300, baseline=np.full(width(model), 0.1))
    seen = view(model, ids)
    call = token_embeddings(seen.sites)["ids"]
    at_start = view(model, ids, {call: lambda x: x * 0 + 0.1}).logits[-1]
    here = seen.logits[-1]
    difference = (here[4] - here[3]) - (at_start[4] - at_start[3])
    assert found.scores.sum() == pytest.approx(difference, rel=1e-3, abs=1e-3)


def test_the_source_has_a_gradient_too() -> None:
    model, ids = small("seq2seq")
    assert input_gradient(model, ids, 4, of="source").gradient.shape == (5, 16)
    assert input_gradient(model, ids, 4).gradient.shape == (3, 16)


def test_parameters_get_no_gradient_and_learn_as_before() -> None:
    model, ids = small("lora")
    params = model.parameters()
    params.grad[...] = 2
    learning = [p.requires_grad for _, p in model.named_parameters()]
    input_gradient(model, ids, 4)
    assert (params.grad == 2).all() and model.parameters() is params
    assert [p.requires_grad for _, p in model.named_parameters()] == learning


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"no embedding of source \(of what is looked up: ids\)"):
        input_gradient(*small("gpt"), 4, of="source")
    with pytest.raises(ConfigError, match=r"no embedding of tokens"):
        input_gradient(cr.models.make("mlp", vocab_size=11, block_size=3), IDS, 4)
    with pytest.raises(ShapeError, match=r"baseline \(3,\)"):
        integrated_gradients(*small("gpt"), 4, baseline=np.zeros(3))
    with pytest.raises(ConfigError, match="steps is 0"):
        integrated_gradients(*small("gpt"), 4, steps=0)


def test_the_gradient_of_any_output_is_that_of_its_logit() -> None:
    model, ids = small("gpt")
    weights = np.zeros((len(IDS), 11))
    weights[2, 4], weights[2, 3] = 1, -1
    found, logit = output_gradient(model, ids, weights), input_gradient(model, ids, 4, minus=3, position=2)
    assert found.logit == pytest.approx(logit.logit) and np.allclose(found.scores, logit.scores, atol=1e-6)
    with pytest.raises(ShapeError, match=r"weights \(3,\) \(must be \(5, 11\)"):
        output_gradient(model, ids, [1, 0, 0])
