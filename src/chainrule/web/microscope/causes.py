"""Where a prediction comes from: gradients on the input, what each part adds to a logit, patches and missing heads."""

from __future__ import annotations

from functools import partial
from typing import Any

from chainrule import inspect
from chainrule.errors import ChainruleError, ConfigError
from chainrule.inspect.inside.checks import number
from chainrule.web.jobs import Tell
from chainrule.web.microscope import outputs
from chainrule.web.microscope.looks import OTHER, Look, check_token
from chainrule.web.microscope.program import opening
from chainrule.web.microscope.reading import SILENT, kind_of, must_predict, read
from chainrule.web.microscope.words import FLAT


def causes(look: Look, token: int, position: int, other: str | None = None) -> dict[str, Any]:
    """Of the logit of a token at a position: its gradient on the input, and its sum over the parts of the model.

    Both are of the model as it is, without edits. What a family does not have is null. Of a model that predicts no
    tokens `token` is a label, and of an embedder the cosine with the `other` text is explained.
    """
    if kind_of(look.loaded) in FLAT:
        look.view()  # which says why not
    if kind_of(look.loaded) in SILENT:
        return outputs.causes(look.loaded, look.reading, token, position, other)
    model, ids = look.loaded.model, look.reading.ids
    check_token(look.loaded, token)
    position = number("position", position, len(look.view().tokens))
    place = f"model, ids, {token}, position={position}"
    lines, gradients = opening(look.loaded, look.reading), {}
    for name, of in (("text", None), ("source", "source")):
        if of is None or look.reading.source is not None:
            found = _tried(partial(inspect.input_gradient, model, ids, token, position=position, of=of))
            gradients[name] = None if found is None else found.scores.tolist()
            if found is not None:
                lines.append(f"print(cr.inspect.input_gradient({place}, of={of!r}).scores.tolist())")
    terms = _tried(partial(inspect.attribute, model, ids, token, position=position))
    if terms is not None:
        lines.append(f"print(cr.inspect.attribute({place}).to_dict())")
    lines.append(f"print(cr.inspect.view(model, ids).logits[{position}, {token}])")
    logits = inspect.view(model, ids).logits if look.changes else look.view().logits
    return {
        "token": token,
        "piece": look.piece(token),
        "logit": float(logits[position, token]),
        "gradient": gradients,
        "terms": None if terms is None else terms.to_dict()["terms"],
        "python": "\n".join([*lines, ""]),
    }


def _tried(function: Any) -> Any:
    """None where a family has no such thing."""
    try:
        return function()
    except ChainruleError:
        return None


def ablation(look: Look, cross: bool, tell: Tell) -> dict[str, Any]:
    """What the predictions lose without each head: KL (L, H)."""
    must_predict("ablation", look.loaded, OTHER)
    found = inspect.ablation(
        look.loaded.model,
        look.reading.ids,
        cross=cross,
        progress=lambda done, total: tell(f"without the heads of block {done} of {total}", done / total),
    )
    return found.to_dict()


def patching(
    look: Look, other: str, tokens: tuple[int | None, int | None], part: str, position: int, tell: Tell
) -> dict[str, Any]:
    """Which place carries the difference between this text and another one of as many tokens.

    This text is the clean one. `tokens` are the right and the wrong one: unless given, what the model expects at the
    position of each text.
    """
    must_predict("patching", look.loaded, OTHER)
    model, clean = look.loaded.model, look.reading
    position = number("position", position, len(look.view().tokens))
    corrupted = read(look.loaded, other, clean.target)
    corrupted.check_as_long(clean)
    expected = [int(inspect.view(model, each.ids).logits[position].argmax()) for each in (clean, corrupted)]
    pair = [
        expected[i] if given is None else check_token(look.loaded, given) for i, given in enumerate(tokens)
    ]
    if pair[0] == pair[1]:
        rule = "must differ: choose another text, or tokens that it should tell apart"
        raise ConfigError(f"microscope: both texts lead to {look.piece(pair[0])!r} ({rule})")
    found = inspect.patching(
        model,
        clean.ids,
        corrupted.ids,
        *pair,
        part=part,
        position=position,
        progress=lambda done, total: tell(f"patching block {done} of {total}", done / total),
    )
    return found.to_dict() | {
        "right": {"id": pair[0], "piece": look.piece(pair[0])},
        "wrong": {"id": pair[1], "piece": look.piece(pair[1])},
        "python": "\n".join(
            [
                *opening(look.loaded, clean),
                *corrupted.lines("other_ids"),
                f"places = {{'part': {part!r}, 'position': {position}}}",
                f"found = cr.inspect.patching(model, ids, other_ids, {pair[0]}, {pair[1]}, **places)",
                "print(found.recovered.tolist())",
                "",
            ]
        ),
    }
