"""The keywords of JSON Schema that are known, and what their values may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chainrule.errors import DataError

KNOWN = (
    "type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum", "const", "anyOf",
    "$ref",
)  # fmt: skip
SILENT = (
    "title",
    "description",
    "default",
    "examples",
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "deprecated",
)
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
MOST_ITEMS = 1000


def check_values(schema: Mapping[str, Any], place: str) -> None:
    """The values of known keywords have the right form."""

    def require(holds: bool, name: str, rule: str) -> None:
        if not holds:
            raise DataError(f"{place[:80]}: {name} is {str(schema[name])[:60]} (must be {rule})")

    for name in ("properties", "$defs", "definitions"):
        if name in schema:
            require(isinstance(schema[name], Mapping), name, "an object")
    for name in ("enum", "anyOf"):
        if name in schema:
            require(isinstance(schema[name], list) and bool(schema[name]), name, "a list that is not empty")
    for name in ("minItems", "maxItems"):
        if name in schema:
            n = schema[name]
            require(type(n) is int and 0 <= n <= MOST_ITEMS, name, f"an integer from 0 to {MOST_ITEMS}")
    if "maxItems" in schema:
        require(schema["maxItems"] >= schema.get("minItems", 0), "maxItems", "at least minItems")
    if "type" in schema:
        types = schema["type"]
        listed = types if isinstance(types, list) and types else [types]
        known = all(isinstance(kind, str) and kind in TYPES for kind in listed)
        require(known, "type", f"one or more of {', '.join(TYPES)}")
    if "required" in schema:
        names, there = schema["required"], schema.get("properties", {})
        there_are = isinstance(names, list) and all(isinstance(name, str) and name in there for name in names)
        require(there_are, "required", "a list of names of properties")
    if "additionalProperties" in schema:
        require(
            isinstance(schema["additionalProperties"], bool | Mapping), "additionalProperties", "a schema"
        )


def check_beside(schema: Mapping[str, Any], place: str) -> None:
    """Nothing stands beside `$ref`, `anyOf`, `enum` and `const` that would be ignored."""
    alone: dict[str, tuple[str, ...]] = {
        "$ref": (),
        "anyOf": (),
        "enum": ("type", "const"),
        "const": ("type", "enum"),
    }
    for name, allowed in alone.items():
        others = [other for other in schema if other not in (name, *allowed, *SILENT)]
        if name in schema and others:
            raise DataError(
                f"{place[:80]}: {others[0]} beside {name} is not supported (leave one of them out)"
            )
    values = schema.get("enum", [])
    if "const" in schema:
        values = [schema["const"], *values]
        if "enum" in schema and dumped(schema["const"]) not in map(dumped, schema["enum"]):
            raise DataError(f"{place[:80]}: const {str(schema['const'])[:60]} (must be one of enum)")
    types = schema.get("type", TYPES)
    for value in values:
        if not set(_types(value)) & {*([types] if isinstance(types, str) else types)}:
            raise DataError(f"{place[:80]}: {str(value)[:60]!r} in enum or const (must be of type {types})")


def _types(value: Any) -> tuple[str, ...]:
    """The types that a value has."""
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, int | float):
        return ("number", "integer") if isinstance(value, int) or value.is_integer() else ("number",)
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return (names.get(type(value), "null"),)


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
