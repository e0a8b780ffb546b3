"""What is wrong with a body, in one line: where, what was sent there, and the rule.

A field that takes several forms, such as `prompt`, has an error for each of them; the one that came furthest says what
was meant. If several came equally far, the rule is the description of the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, from_json

from chainrule.serve.api.errors import ApiError, refused
from chainrule.suggest import did_you_mean

SHOWN = 60  # characters of a value
LENGTHS = {"too_long": ("most", "max_length"), "too_short": ("least", "min_length")}
Place: TypeAlias = tuple[int | str, ...]


@dataclass(frozen=True)
class Wrong:
    """One error of pydantic."""

    about: ErrorDetails
    place: Place
    """In the body."""
    form: Place
    """What else pydantic names: the forms of a field that it tried on the way."""
    value: Any
    """What was sent there."""

    @classmethod
    def of(cls, about: ErrorDetails, body: Any) -> Wrong:
        place: list[int | str] = []
        form: list[int | str] = []
        for part in about["loc"]:
            inside = isinstance(body, dict) and part in body
            if inside or (isinstance(body, list) and isinstance(part, int)):
                place.append(part)
                body = body[part]
            else:
                form.append(part)
        if about["type"] == "missing":
            place.append(form.pop())
        return cls(about, tuple(place), tuple(form), body)

    @property
    def progress(self) -> tuple[int, tuple[int, ...], bool]:
        """How far a form fits: how deep, how many items of each list, and whether the type was right."""
        items = tuple(part for part in self.place if isinstance(part, int))
        return len(self.place), items, not self.about["type"].endswith("_type")

    @property
    def name(self) -> str:
        return ".".join(map(named, self.place))[:200]


def refusal(kind: type[BaseModel], body: bytes, error: ValidationError) -> ApiError:
    """The error of a body that is not of this kind."""
    found = error.errors(include_url=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        return refused(f"body: {found[0]['msg']} (must be a JSON object)", code="invalid_json")
    given = from_json(body)
    if not isinstance(given, dict):
        return refused(f"body: {shown(given)} (must be a JSON object)")
    of_field = [Wrong.of(each, given) for each in found if each["loc"][0] == found[0]["loc"][0]]
    best = max(of_field, key=lambda wrong: wrong.progress)  # the first of equals
    param, what = named(best.place[0]), best.about["type"]
    fields = _model(kind, best.place[:-1]).model_fields
    if what == "extra_forbidden":
        known = [field.alias or name for name, field in fields.items()]
        hint = did_you_mean(named(best.place[-1]), known) or f"known are {', '.join(known)}"
        return refused(f"{best.name}: no such field ({hint})", param, "unknown_parameter")
    if what == "missing":
        return refused(f"{best.name}: missing (must be given)", param, "missing_required_parameter")
    unclear = len({wrong.form for wrong in of_field if wrong.progress == best.progress}) > 1
    rule = _rule(best.about, fields.get(str(best.place[-1])), unclear)
    value = f"{len(best.value):,} of them" if what in LENGTHS else shown(best.value)
    return refused(f"{best.name}: {value} ({rule})", param)


def named(part: int | str) -> str:
    """A part of a place on one line, however a client spelled it

    >>> from chainrule.serve.api.refusals import named
    >>> named("stop"), named(3), named("a\\nb")
    ('stop', '3', 'a\\\\nb')
    """
    return json.dumps(str(part)[:SHOWN], ensure_ascii=False)[1:-1]


def shown(value: Any) -> str:
    """A value as JSON, or what it is

    >>> from chainrule.serve.api.refusals import shown
    >>> shown(-1.5), shown("x"), shown(None), shown([1, 2]), shown({"a": 1})
    ('-1.5', '"x"', 'null', 'a list of 2', 'an object')
    """
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, dict):
        return "an object"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _rule(about: ErrorDetails, field: FieldInfo | None, unclear: bool) -> str:
    """What must be there; `unclear` if several forms of the field were missed alike."""
    described = field.description if field else None
    if described and (unclear or about["type"] == "literal_error"):
        return f"must be {described[0].lower()}{described[1:].removesuffix('.')}"
    if about["type"] in LENGTHS:
        word, limit = LENGTHS[about["type"]]
        return f"must be at {word} {about['ctx'][limit]:,}"
    return about["msg"].replace("Input should be", "must be")


def _model(kind: type[BaseModel], place: Place) -> type[BaseModel]:
    """The model of the object at a place of a body."""
    for part in place:
        if isinstance(part, str) and part in kind.model_fields:
            kind = next(_models(kind.model_fields[part].annotation), kind)
    return kind


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
