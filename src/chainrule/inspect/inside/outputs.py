"""What a model says of a text when it predicts no tokens, and which tokens that hangs on.

labels    logits (K,) of a text, or (T, K) of its tokens          a classifier, a tagger
reward    one number where the text ends                          of its beginnings too: r_t = w · hidden_t
vector    (C,), compared by cosine                                ∂cos(v, u)/∂v = (u/|u| - cos v/|v|) / |v|
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor, no_grad
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.inside.checks import number
from chainrule.inspect.inside.saliency import Saliency, output_gradient
from chainrule.inspect.inside.view import View
from chainrule.models.model import Model
from chainrule.models.reward import Reward


def label_logprobs(seen: View) -> Array:
    """ln P of each label: (1, K) of a text, (T, K) of its tokens."""
    classes = getattr(seen.model.config, "classes", None)  # type: ignore[attr-defined]
    if classes is None or seen.output.shape[-1] != classes:
        name = type(seen.model).__name__
        raise ConfigError(f"{name}: gives {seen.output.shape} for a text (must be logits of labels)")
    return np.asarray(ops.log_softmax(seen.output.reshape(-1, classes)))


def label_gradient(model: Model, ids: Any, label: int, *, position: int = -1) -> Saliency:
    """Gradient × input of the logit of a label; of a tagger at a position.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("bert-tagger", n_layer=1, n_head=2, n_embd=16, vocab_size=10, classes=3)
    >>> cr.inspect.label_gradient(model, [1, 2, 3, 4], 2, position=1).scores.shape
    (4,)
    """
    shape = label_logprobs(View(model, ids)).shape
    weights = np.zeros(shape)
    weights[number("position", position, shape[0]), number("label", label, shape[1], backwards=False)] = 1
    return output_gradient(model, ids, weights if getattr(model, "per_token", False) else weights[0])


def rewards(seen: View) -> Array:
    """The reward of the text up to each token (T,); the last one is that of the text."""
    if not isinstance(seen.model, Reward):
        raise ConfigError(f"rewards: of a {type(seen.model).__name__} (must be a reward model)")
    hidden = seen.value(seen.sites.last_norm[1])[:, -len(seen.tokens) :]  # without a soft prompt
    with no_grad():
        return np.asarray(seen.model.score(Tensor(hidden)).numpy().reshape(-1))


def reward_gradient(model: Reward, ids: Any, *, position: int = -1) -> Saliency:
    """Gradient × input of the reward of the text up to a position; what comes after it has no part in it."""
    ids = np.asarray(ids)
    found = output_gradient(model, ids[: number("position", position, len(ids)) + 1], 1.0)
    after = len(ids) - len(found.scores)
    return Saliency(
        found.logit, np.pad(found.gradient, ((0, after), (0, 0))), np.pad(found.scores, (0, after))
    )


def cosine_gradient(model: Model, ids: Any, other: Any) -> Saliency:
    """Gradient × input of the cosine between the vectors of this text and of another one: which tokens make them alike.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("bert-embedder", n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    >>> cr.inspect.cosine_gradient(model, [1, 2, 3], [1, 4, 5]).scores.shape
    (3,)
    """
    v, u = (np.asarray(View(model, each).output, np.float64) for each in (ids, other))
    if v.ndim != 1:
        raise ConfigError(
            f"cosine_gradient: {type(model).__name__} gives {v.shape} for a text (must be one vector)"
        )
    length = np.linalg.norm(v)
    u = u / np.linalg.norm(u)
    cosine = float(u @ v / length)
    found = output_gradient(model, ids, (u - cosine * v / length) / length)
    return Saliency(cosine, found.gradient, found.scores)
