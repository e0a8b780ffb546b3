"""Models that predict no tokens: what a classifier, a tagger, a reward model or an embedder says of a text."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import inspect
from chainrule.errors import ConfigError
from chainrule.inspect.inside.checks import number
from chainrule.web.microscope.program import opening
from chainrule.web.microscope.reading import Reading, kind_of, read
from chainrule.web.models import Loaded


def names(loaded: Loaded) -> list[str]:
    """Of the labels, by number."""
    config = loaded.model.config
    return list(config.labels) or [f"label {i}" for i in range(config.classes)]


def said(loaded: Loaded, seen: inspect.View) -> dict[str, Any]:
    """What the model says of the text: `top`, the labels of the text or of each token, the likeliest first; `rewards`
    up to each token; the length of the `vector`."""
    match kind_of(loaded):
        case "reward":
            return {"rewards": inspect.rewards(seen).tolist()}
        case "vector":
            return {"vector": {"size": len(seen.output), "length": float(np.linalg.norm(seen.output))}}
    return likeliest(names(loaded), inspect.label_logprobs(seen))


def likeliest(known: list[str], logprobs: Any) -> dict[str, Any]:
    """Labels with their probabilities in the order of them, for each row, and how undecided each row is."""
    return {
        "top": [
            [
                {"id": int(i), "piece": known[i], "p": float(np.exp(row[i]))}
                for i in np.argsort(-row, kind="stable")
            ]
            for row in logprobs
        ],
        "entropy": (-(np.exp(logprobs) * logprobs).sum(-1)).tolist(),
    }


def causes(loaded: Loaded, reading: Reading, choice: int, position: int, other: str | None) -> dict[str, Any]:
    """Which tokens the score of a label, the reward up to a position or the cosine with another text hang on."""
    model, ids = loaded.model, reading.ids
    lines = opening(loaded, reading)
    match kind_of(loaded):
        case "reward":
            position = number("position", position, len(ids))
            found = inspect.reward_gradient(model, ids, position=position)
            piece, call = "reward", f"reward_gradient(model, ids, position={position})"
        case "vector":
            if not other:
                raise ConfigError("microscope: no other text to compare with (write one)")
            second = read(loaded, other)
            lines += second.lines("other_ids")
            found = inspect.cosine_gradient(model, ids, second.ids)
            piece, call = "cosine", "cosine_gradient(model, ids, other_ids)"
        case kind:
            place = position if kind == "tags" else 0
            found = inspect.label_gradient(model, ids, choice, position=place)
            piece, call = names(loaded)[choice], f"label_gradient(model, ids, {choice}, position={place})"
    return {
        "token": choice,
        "piece": piece,
        "logit": found.logit,
        "gradient": {"text": found.scores.tolist()},
        "terms": None,
        "python": "\n".join(
            [*lines, f"found = cr.inspect.{call}", "print(found.logit, found.scores.tolist())", ""]
        ),
    }


def moved(loaded: Loaded, before: inspect.View, after: inspect.View) -> dict[str, Any]:
    """What edits change of it: KL and the probabilities of labels, or a number before and after."""
    match kind_of(loaded):
        case "reward":
            numbers = [inspect.rewards(each)[-1] for each in (before, after)]
        case "vector":
            first, second = (each.output / np.linalg.norm(each.output) for each in (before, after))
            numbers = [1.0, first @ second]
        case _:
            p, q = (inspect.label_logprobs(each) for each in (before, after))  # (N, K)
            known = names(loaded)
            rows = [
                [
                    {"id": i, "piece": known[i], "before": float(np.exp(a[i])), "after": float(np.exp(b[i]))}
                    for i in range(len(known))
                ]
                for a, b in zip(p, q, strict=True)
            ]
            return {"kl": (np.exp(p) * (p - q)).sum(-1).tolist(), "moved": rows}
    return {"numbers": [float(x) for x in numbers]}
