"""JSON Schema as a grammar: every text of the grammar satisfies the schema.

Known are `type`, `properties`, `required`, `additionalProperties`, `items`, `minItems`, `maxItems`, `enum`, `const`,
`anyOf` and `$ref` to `$defs`. Listed properties come in the order of the schema, and no others beside them. What is not
known is refused, and not ignored: an answer that only looks right would be worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chainrule.errors import DataError
from chainrule.serve.constraints.grammar import (
    INTEGER,
    NUMBER,
    SPACE,
    STRING,
    Choice,
    Literal,
    Opening,
    Stack,
    Symbol,
    Words,
    after,
    push,
)
from chainrule.serve.constraints.keywords import KNOWN, SILENT, TYPES, check_beside, check_values, dumped

DEEPEST = 64  # levels of a schema


@dataclass(frozen=True, eq=False)
class Value:
    """What a schema allows; its options are found when they are needed, since a schema may contain itself."""

    schema: Any
    root: Schema

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        for option in self.root.options(self):
            yield from after(push(rest, *option), byte)


@dataclass(frozen=True)
class Members:
    """The properties of an object from a certain one on; those that are not required may be left out."""

    of: tuple[tuple[bytes, Value, bool], ...]
    """Name as JSON, value, whether it is required."""
    place: int = 0
    first: bool = True

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        names, required = [], False
        for place, (name, value, required) in enumerate(self.of[self.place :], self.place):
            more = Members(self.of, place + 1, first=False)
            names.append((name + b":", (SPACE, value, SPACE, more)))
            if required:
                break
        if names:
            yield from after(push(rest, *_comma(self.first), Words(tuple(names))), byte)
        if not required:
            yield from after(push(rest, Literal(b"}")), byte)


@dataclass(frozen=True)
class AnyMembers:
    """Properties of any names, all of one kind."""

    value: Value
    first: bool = True

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        yield from after(push(rest, Literal(b"}")), byte)
        more = AnyMembers(self.value, first=False)
        member = (*_comma(self.first), *STRING, Literal(b":"), SPACE, self.value, SPACE, more)
        yield from after(push(rest, *member), byte)


@dataclass(frozen=True)
class Items:
    """The items of a list."""

    value: Value
    least: int
    most: int | None
    count: int = 0

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        if self.count >= self.least:
            yield from after(push(rest, Literal(b"]")), byte)
        if self.most is None or self.count < self.most:
            more = Items(self.value, self.least, self.most, min(self.count + 1, self._different))
            yield from after(push(rest, *_comma(self.count == 0), self.value, SPACE, more), byte)

    @property
    def _different(self) -> int:
        """Beyond this count it makes no difference how many there are."""
        return max(self.least, 1) if self.most is None else self.most


def _comma(first: bool) -> tuple[Symbol, ...]:
    return () if first else (Literal(b","), SPACE)


class Schema:
    """A schema whose keywords are all known; `value` is its grammar."""

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._values: dict[int, Value] = {}
        self._options: dict[Value, tuple[tuple[Symbol, ...], ...]] = {}
        self._kept: list[Any] = []  # so that an identity stays one
        self._heights: dict[int, int] = {}
        self._check(schema, "schema", 0)
        self.value = self._value(schema)
        if self._resolved(schema).get("type") != "object":
            raise DataError('schema: type is not "object" (an answer must be an object)')

    def options(self, value: Value) -> tuple[tuple[Symbol, ...], ...]:
        """The sequences of symbols that a value may be."""
        if value not in self._options:
            self._options[value] = tuple(self._expand(self._resolved(value.schema)))
        return self._options[value]

    def _value(self, schema: Any) -> Value:
        if id(schema) not in self._values:
            self._kept.append(schema)
            self._values[id(schema)] = Value(schema, self)
        return self._values[id(schema)]

    def _expand(self, schema: Mapping[str, Any]) -> Iterator[tuple[Symbol, ...]]:
        if "enum" in schema or "const" in schema:
            values = [schema["const"]] if "const" in schema else schema["enum"]
            yield (Words(tuple((text, ()) for text in sorted({dumped(each) for each in values}))),)
            return
        if "anyOf" in schema:
            for each in schema["anyOf"]:
                yield (self._value(each),)
            return
        types = schema.get("type", TYPES)
        for kind in [types] if isinstance(types, str) else types:
            yield self._of_type(kind, schema)

    def _of_type(self, kind: str, schema: Mapping[str, Any]) -> tuple[Symbol, ...]:
        if kind == "object":
            return Opening(ord("{")), SPACE, self._members(schema)
        if kind == "array":
            items = self._value(schema.get("items", ANY))
            counts = schema.get("minItems", 0), schema.get("maxItems")
            return Opening(ord("[")), SPACE, Items(items, *counts)
        literals: dict[str, tuple[Symbol, ...]] = {
            "string": STRING,
            "number": NUMBER,
            "integer": INTEGER,
            "boolean": (Choice(((Literal(b"true"),), (Literal(b"false"),))),),
            "null": (Literal(b"null"),),
        }
        return literals[kind]

    def _members(self, schema: Mapping[str, Any]) -> Symbol:
        required = schema.get("required", ())
        if properties := schema.get("properties"):
            return Members(
                tuple(
                    (dumped(name), self._value(each), name in required) for name, each in properties.items()
                )
            )
        more = schema.get("additionalProperties", True)
        if more is False:
            return Literal(b"}")
        return AnyMembers(self._value(ANY if more is True else more))

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """A schema without `$ref`; true allows anything."""
        while schema is not True and "$ref" in schema:
            schema = self._target(schema["$ref"])
        return ANY if schema is True else dict(schema)

    def _target(self, ref: Any) -> Any:
        found = self._root
        parts = ref.split("/") if isinstance(ref, str) else [""]
        if parts[0] != "#":
            raise DataError(f"schema: $ref {str(ref)[:80]!r} (must begin with #)")
        for part in parts[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise DataError(f"schema: $ref {ref[:80]!r} (leads nowhere)")
            found = found[name]
        return found

    def _check(self, schema: Any, place: str, depth: int) -> None:
        """Refuse what is not known, wherever it stands."""
        if depth > DEEPEST:
            raise DataError(f"{place[:80]}: deeper than {DEEPEST} levels")
        if schema is True:
            return
        if not isinstance(schema, Mapping):
            raise DataError(f"{place[:80]}: {str(schema)[:40]} (must be a schema, an object)")
        for name in schema:
            if name not in KNOWN and name not in SILENT:
                raise DataError(
                    f"{place[:80]}: keyword {name[:40]!r} is not supported (known are {', '.join((*KNOWN, '$defs'))})"
                )
        check_values(schema, place)
        check_beside(schema, place)
        self._height(schema, ())
        inner: dict[str, Any] = {name: schema[name] for name in ("items",) if name in schema}
        if isinstance(schema.get("additionalProperties"), Mapping):
            inner["additionalProperties"] = schema["additionalProperties"]
        inner |= {f"anyOf/{i}": each for i, each in enumerate(schema.get("anyOf", ()))}
        for group in ("properties", "$defs", "definitions"):
            inner |= {f"{group}/{name}": each for name, each in schema.get(group, {}).items()}
        for name, each in inner.items():
            self._check(each, f"{place}/{name}", depth + 1)

    def _height(self, schema: Any, before: tuple[int, ...]) -> int:
        """Choices and references in a row until something comes that is neither."""
        if id(schema) in before:
            raise DataError("schema: a choice or a $ref leads to itself (must lead to a value)")
        if schema is True or not isinstance(schema, Mapping):
            return 0
        if id(schema) not in self._heights:
            listed = schema.get("anyOf")
            ahead = listed if isinstance(listed, list) else []
            if "$ref" in schema:
                ahead = [self._target(schema["$ref"])]
            too_many = len(before) > DEEPEST
            heights = [] if too_many else [1 + self._height(each, (*before, id(schema))) for each in ahead]
            if too_many or max(heights, default=0) > DEEPEST:
                raise DataError(f"schema: more than {DEEPEST} choices or $ref in a row (must be fewer)")
            self._heights[id(schema)] = max(heights, default=0)
        return self._heights[id(schema)]


ANY: Mapping[str, Any] = {}
