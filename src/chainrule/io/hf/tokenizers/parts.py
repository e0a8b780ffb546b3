"""Shared by all kinds of `tokenizer.json`: its parts by name, and ids without gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.errors import FormatError, kind_of

Description = Mapping[str, Any]


def part(description: Description, name: str) -> Description:
    """A part such as the normalizer; empty if missing or null."""
    value = description.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FormatError(f"{name} is {kind_of(value)} (must be an object)")
    return value


class OtherParts(FormatError):
    """A description that needs the general pipeline."""


def refuse(name: str, got: Any, known: str) -> OtherParts:
    """The error for a part that a tokenizer with a class of its own does not have."""
    return OtherParts(f"{name} {got!r} is not supported (must be {known})")


def added_tokens(description: Description) -> dict[str, int]:
    """Special tokens and their ids; added tokens that are not special are refused."""
    listed = description.get("added_tokens") or []
    if not isinstance(listed, list):
        raise FormatError(f"added_tokens is {kind_of(listed)} (must be a list)")
    found: dict[str, int] = {}
    for entry in listed:
        name, id = (entry.get("content"), entry.get("id")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or type(id) is not int:
            raise FormatError(f"added token {entry!r} (must have a content and an id)")
        if not entry.get("special"):
            raise refuse("added token", name, "special")
        found[name] = id
    return found


def in_order(ids: Mapping[str, int]) -> list[str]:
    """Tokens by id; ids must be 0 .. V-1."""
    for token, id in ids.items():
        if type(id) is not int:
            raise FormatError(f"id {id!r} of token {token!r} (must be an integer)")
    tokens = sorted(ids, key=lambda token: ids[token])
    for place, token in enumerate(tokens):
        if ids[token] != place:
            rule = f"ids must be 0 to {len(ids) - 1}, each once"
            raise OtherParts(f"token {token!r} has id {ids[token]}, expected {place} ({rule})")
    return tokens


def describe(**parts: Any) -> dict[str, Any]:
    """A whole `tokenizer.json` with the given parts."""
    nothing = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    return {"version": "1.0", "added_tokens": []} | dict.fromkeys(nothing) | parts


def describe_added(ids: Mapping[str, int]) -> list[dict[str, Any]]:
    """Special tokens as `tokenizer.json` lists them."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    listed = sorted(ids.items(), key=lambda item: item[1])
    return [{"id": id, "content": name, **flags} for name, id in listed]


def token_before(description: Description) -> str | None:
    """The special token that the post_processor puts before a text."""
    processor = part(description, "post_processor")
    steps = processor.get("processors") if processor.get("type") == "Sequence" else [processor]
    for step in steps if isinstance(steps, list) else ():
        single = step.get("single") if isinstance(step, dict) else None
        first = single[0] if isinstance(single, list) and single and isinstance(single[0], dict) else {}
        token = first.get("SpecialToken")
        if isinstance(token, dict):
            return str(token.get("id"))
    return None


def put_before(token: str, id: int) -> dict[str, Any]:
    """The post_processor that puts a token before a text."""
    special, a, b = _steps(token)
    return _template(token, id, [special, a], [special, b])


def put_after(token: str, id: int) -> dict[str, Any]:
    """The post_processor that puts a token after a text."""
    special, a, b = _steps(token)
    return _template(token, id, [a, special], [b, special])


def _steps(token: str) -> list[dict[str, Any]]:
    """A special token, a text and the second text of a pair, as a template has them."""
    texts = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return [{"SpecialToken": {"id": token, "type_id": 0}}, *texts]


def _template(token: str, id: int, first: list[Any], second: list[Any]) -> dict[str, Any]:
    template = {"type": "TemplateProcessing", "single": first, "pair": first + second}
    return template | {"special_tokens": {token: {"id": token, "ids": [id], "tokens": [token]}}}
