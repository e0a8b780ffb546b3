"""Gaps of a text, filled by a BERT."""

from __future__ import annotations

from typing import Any

from chainrule.generate import fill_masks
from chainrule.generate.fill import MASK
from chainrule.web.microscope.reading import suited
from chainrule.web.models import Loaded
from chainrule.web.playground.play import Form

TOP = 8
EXAMPLES = ("the value of the ", "the ", "a")


def filled(loaded: Loaded, form: Form) -> dict[str, Any]:
    """The likeliest tokens of each gap."""
    text = suited(loaded, EXAMPLES).rstrip() + f" {MASK}" if form.prompt is None else form.prompt
    count = min(TOP, loaded.tokenizer.vocab_size)
    (found,) = fill_masks(loaded.model, loaded.tokenizer, [text], count)
    return {
        "asked": text,
        "mask": MASK,
        "text": found.text,
        "gaps": [[{"id": g.id, "piece": g.token, "p": g.probability} for g in gap] for gap in found.gaps],
        "python": "\n".join(
            [
                "import chainrule as cr",
                "",
                f"model, tokenizer = cr.load({str(loaded.path)!r})",
                f"(found,) = cr.generate.fill_masks(model, tokenizer, [{text!r}], {count})",
                "print(found.text, found.gaps)",
                "",
            ]
        ),
    }
