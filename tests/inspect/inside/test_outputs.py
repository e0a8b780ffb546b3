"""What models that predict no tokens say of a text, and which tokens that hangs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.inspect import (
    Saliency,
    cosine_gradient,
    label_gradient,
    label_logprobs,
    reward_gradient,
    rewards,
    view,
)
from chainrule.inspect.inside.saliency import token_embeddings
from tests.inspect.inside.small import IDS, SIZES

OTHER = [1, 4, 6, 2]
BERT = SIZES | {"n_hidden": 24}
REWARDS = ("gpt-reward", "llama-reward", "neox-reward")


def made(name: str, **sizes: Any) -> Any:
    """A model in float64 whose numbers are not all near 0."""
    cr.seed(0)
    model = cr.models.make(name, **(BERT if name.startswith("bert") else SIZES) | sizes)
    for _, param in model.named_parameters():
        param.data[...] *= 3
    return model.to(np.float64).eval()


def check_slope(model: Any, found: Saliency, value: Callable[[Any], float], ids: Any = IDS) -> None:
    """The gradient times a small way is how far the number moves when the embeddings go that way."""
    (call,) = set(token_embeddings(view(model, ids).sites).values())
    way, eps = np.random.default_rng(0).normal(size=found.gradient.shape), 1e-5
    ends = [value({call: lambda x, s=sign: x + s * eps * way[: x.shape[1]]}) for sign in (1, -1)]
    assert (found.gradient * way).sum() == pytest.approx((ends[0] - ends[1]) / (2 * eps), rel=1e-5, abs=1e-9)
    assert np.allclose(found.scores, (view(model, ids).value(call)[0] * found.gradient).sum(-1))


@pytest.mark.parametrize("sizes", [{}, {"pooling": "mean"}, {"buckets": 8}])
def test_labels_of_a_text(sizes: dict[str, Any]) -> None:
    model = made("bert-classifier", classes=3, **sizes)
    seen = view(model, IDS)
    expected = model(np.array([IDS])).numpy()
    assert np.allclose(label_logprobs(seen), expected - np.log(np.exp(expected).sum()))
    found = label_gradient(model, IDS, 2)
    assert found.logit == pytest.approx(expected[0, 2])
    if not sizes.get("buckets"):  # a bag of words looks tokens up by a table of its own
        check_slope(model, found, lambda edits: float(view(model, IDS, edits).output[2]))


def test_labels_of_tokens() -> None:
    model = made("bert-tagger", classes=3)
    logits = model(np.array([IDS])).numpy()[0]
    assert label_logprobs(view(model, IDS)).shape == (len(IDS), 3)
    found = label_gradient(model, IDS, 1, position=2)
    assert found.logit == pytest.approx(logits[2, 1])
    check_slope(model, found, lambda edits: float(view(model, IDS, edits).output[2, 1]))


@pytest.mark.parametrize("name", REWARDS)
def test_the_reward_up_to_each_token_is_that_of_the_text_that_ends_there(name: str) -> None:
    model = made(name)
    alone = [float(model(np.array([IDS[: t + 1]])).numpy()[0]) for t in range(len(IDS))]
    assert rewards(view(model, IDS)).tolist() == pytest.approx(alone)
    found = reward_gradient(model, IDS, position=2)
    assert found.logit == pytest.approx(alone[2]) and not found.scores[3:].any()
    check_slope(model, found, lambda edits: float(rewards(view(model, IDS, edits))[2]))


def test_rewards_are_those_of_an_edited_model() -> None:
    model = made("gpt-reward")
    edit = cr.inspect.ZeroHeads("h.0", 1)
    edited = rewards(view(model, IDS, edit))
    assert edited[-1] == pytest.approx(float(view(model, IDS, edit).output))
    assert abs(edited[-1] - rewards(view(model, IDS))[-1]) > 1e-6


@pytest.mark.parametrize("normalize", [True, False])
def test_which_tokens_make_two_texts_alike(normalize: bool) -> None:
    model = made("bert-embedder", normalize=normalize)

    def cosine(edits: Any) -> float:
        first, second = view(model, IDS, edits).output, view(model, OTHER).output
        return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))

    found = cosine_gradient(model, IDS, OTHER)
    assert found.logit == pytest.approx(cosine(None)) and abs(found.logit) < 0.999
    check_slope(model, found, cosine)


def test_what_has_no_such_output_says_so() -> None:
    gpt = made("gpt")
    with pytest.raises(ConfigError, match="must be logits of labels"):
        label_logprobs(view(gpt, IDS))
    with pytest.raises(ConfigError, match="must be a reward model"):
        rewards(view(gpt, IDS))
    with pytest.raises(ConfigError, match="must be one vector"):
        cosine_gradient(gpt, IDS, OTHER)
    with pytest.raises(ConfigError, match="label 3"):
        label_gradient(made("bert-classifier", classes=3), IDS, 3)
