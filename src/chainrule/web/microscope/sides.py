"""Two models on one text: two checkpoints of a run, or two runs with one tokenizer."""

from __future__ import annotations

from typing import Any

from chainrule import inspect
from chainrule.errors import ConfigError
from chainrule.web.microscope.looks import OTHER, Look
from chainrule.web.microscope.program import opening
from chainrule.web.microscope.reading import must_predict
from chainrule.web.models import Loaded

MOVED = 8  # heads whose maps differ most


def side_by_side(look: Look, other: Loaded) -> dict[str, Any]:
    """Losses and likeliest tokens of both at every position, how far apart they are, and which heads moved."""
    for each in (look.loaded, other):
        must_predict("compare", each, OTHER)
    if other.tokenizer != look.loaded.tokenizer:
        raise ConfigError(
            "microscope: the models have different tokenizers (must be the same to read one text)"
        )
    found = inspect.compare(look.loaded.model, other.model, look.reading.ids)
    sides = [
        {
            "loss": view.summary(1)["loss"],
            "mean": _mean(view.summary(1)["loss"]),
            "top": [look.tokens(row)[0] for row in view.top(1)],
        }
        for view in (found.before, found.after)
    ]
    lines = opening(look.loaded, look.reading)
    lines.insert(3, f"other, _ = cr.load({str(other.path)!r})")
    return {
        "sides": sides,
        "kl": found.kl.tolist(),
        "moved": [{"block": b, "head": head, "distance": d} for b, head, d in found.moved_heads(MOVED)],
        "python": "\n".join(
            [
                *lines,
                "found = cr.inspect.compare(model, other, ids)",
                "print(found.kl.tolist(), found.before.loss, found.after.loss)",
                f"print(found.moved_heads({MOVED}))",
                "",
            ]
        ),
    }


def _mean(losses: list[float | None]) -> float | None:
    known = [loss for loss in losses if loss is not None]
    return sum(known) / len(known) if known else None
