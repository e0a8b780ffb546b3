"""What the microscope shows: a text as a model reads it, by `chainrule.inspect`; heads can be switched off."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from chainrule import inspect
from chainrule.errors import ConfigError
from chainrule.text import SpecialIds, prompt_ids
from chainrule.web.models import Loaded, suited

TOP = 8  # tokens that are shown of a prediction
LONGEST = 160  # tokens of a text
EXAMPLES = ("The value of the value of ", "the value", "the ", "a")


def ids_of(loaded: Loaded, text: str) -> Any:
    """The ids of a text as the model expects them, if they fit its context."""
    if masked(loaded):
        special = SpecialIds.of(loaded.tokenizer.special_ids)
        inside = prompt_ids(loaded.tokenizer, text, special=True)
        ids = np.array([special.cls, *inside, special.sep])
    else:
        ids = prompt_ids(loaded.tokenizer, text)
    most = min(LONGEST, int(loaded.model.context))
    if not len(ids):
        raise ConfigError("microscope: no text to read (write some)")
    if len(ids) > most:
        raise ConfigError(f"microscope: {len(ids)} tokens (at most {most}: shorten the text)")
    return ids


def masked(loaded: Loaded) -> bool:
    """The model predicts tokens where they stand, from both sides, rather than those that follow."""
    return "masked" in getattr(loaded.model, "reads", ())


def edits_of(off: str) -> list[inspect.ZeroHeads]:
    """Heads that are switched off, written as h.0:1 and separated by commas."""
    found = []
    for word in filter(None, off.split(",")):
        block, colon, head = word.rpartition(":")
        if not colon or not head.isdecimal() or len(head) > 4:
            raise ConfigError(f"microscope: head {word[:40]!r} (must be a block and a number, such as h.0:1)")
        found.append(inspect.ZeroHeads(block, int(head)))
    return found


def seen_by(loaded: Loaded, text: str, off: str = "") -> inspect.View:
    """The view of a text; the last one is kept, so that its forward pass serves every part of the page."""
    key = f"view {off} {text}"
    if key not in loaded.known:
        view = inspect.view(loaded.model, ids_of(loaded, text), edits_of(off))
        loaded.known = {name: value for name, value in loaded.known.items() if not name.startswith("view ")}
        loaded.known[key] = view
    return loaded.known[key]


def read(loaded: Loaded, text: str | None, off: str = "") -> dict[str, Any]:
    """Tokens, predictions at every position, and what is there to be looked at; with heads off also what changes.

    Without a text one is chosen that suits the model.
    """
    text = suited(loaded, EXAMPLES) if text is None else text
    ids, edits = ids_of(loaded, text), edits_of(off)
    piece, seen = loaded.tokenizer.piece, seen_by(loaded, text, off)
    summary = seen.summary(min(TOP, loaded.tokenizer.vocab_size))
    summary["pieces"] = [piece(id) for id in summary["tokens"]]
    summary["top"] = [[{"id": id, "piece": piece(id), "p": p} for id, p in row] for row in summary["top"]]
    summary["text"] = text
    summary["next"] = not masked(loaded)
    summary["kl"] = inspect.effect(loaded.model, ids, edits).kl.tolist() if edits else None
    summary["python"] = program(loaded, text, off)
    return summary


def attention(loaded: Loaded, text: str, block: str, off: str = "") -> dict[str, Any]:
    """The attention maps of a block (H, T, S), as float32 in base64."""
    return packed(seen_by(loaded, text, off).attention(block))


def gates(loaded: Loaded, text: str, block: str) -> dict[str, Any]:
    """Gates and states of a recurrent layer, each (T, H)."""
    return {name: packed(values) for name, values in seen_by(loaded, text).gates(block).items()}


def lens(loaded: Loaded, text: str, off: str = "") -> dict[str, Any]:
    """What would be predicted after each block."""
    top = min(3, loaded.tokenizer.vocab_size)
    found = inspect.logit_lens(loaded.model, ids_of(loaded, text), top=top, edits=edits_of(off)).to_dict()
    piece = loaded.tokenizer.piece
    found["top"] = [
        [[{"id": id, "piece": piece(id), "p": p} for id, p in cell] for cell in row] for row in found["top"]
    ]
    return found


def heads(loaded: Loaded) -> dict[str, Any]:
    """Scores of all heads for the known patterns, and the best head of each."""
    if "heads" not in loaded.known:
        found = inspect.head_scores(loaded.model)
        best = {kind: found.best(kind) for kind in found.scores}
        loaded.known["heads"] = found.to_dict() | {"best": best}
    return dict(loaded.known["heads"])


def architecture(loaded: Loaded) -> dict[str, Any]:
    """The calls of a forward pass, with shapes and costs."""
    if "architecture" not in loaded.known:
        loaded.known["architecture"] = inspect.architecture(loaded.model)
    return dict(loaded.known["architecture"])


def packed(values: Any) -> dict[str, Any]:
    """An array for the page: exact, and a tenth of the size of its digits."""
    array = np.ascontiguousarray(values, np.float32)
    return {"shape": array.shape, "data": base64.b64encode(array.tobytes()).decode()}


def program(loaded: Loaded, text: str, off: str) -> str:
    """The numbers of the view in Python."""
    ids = f"cr.text.prompt_ids(tokenizer, {text!r})"
    if masked(loaded):
        special = "cr.text.SpecialIds.of(tokenizer.special_ids)"
        ids = f"[{special}.cls, *cr.text.prompt_ids(tokenizer, {text!r}, special=True), {special}.sep]"
    edits = ", ".join(f"cr.inspect.ZeroHeads({edit.block!r}, {edit.heads!r})" for edit in edits_of(off))
    return "\n".join(
        [
            "import chainrule as cr",
            "",
            f"model, tokenizer = cr.load({str(loaded.path)!r})",
            f"ids = {ids}",
            f"edits = [{edits}]",
            "seen = cr.inspect.view(model, ids, edits)",
            "print(seen.summary())",
            "lens = cr.inspect.logit_lens(model, ids, edits=edits)",
            "architecture = cr.inspect.architecture(model)",
            "# also: seen.attention(block)[head], cr.inspect.head_scores(model); of an RNN seen.gates(block)",
            "",
        ]
    )
