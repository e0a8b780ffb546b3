"""Texts of a grammar are JSON and satisfy the schema, whatever a model prefers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import DataError
from chainrule.serve.constraints.grammar import advance, begin
from chainrule.serve.constraints.schema import Schema
from chainrule.serve.constraints.tokens import JsonConstraint, TokenTree

PERSON = {
    "type": "object",
    "title": "Person",
    "properties": {
        "name": {"type": "string", "description": "of a person"},
        "age": {"type": ["integer", "null"]},
        "tags": {"type": "array", "items": {"enum": ["a", "bé", 3, None]}, "minItems": 1, "maxItems": 3},
        "size": {"anyOf": [{"type": "number"}, {"const": {"w": 1}}]},
        "friend": {"$ref": "#/$defs/friend"},
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
    "$defs": {
        "friend": {
            "type": "object",
            "properties": {"of": {"$ref": "#/$defs/friend"}, "ok": {"type": "boolean"}},
        }
    },
}
TABLE = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}
ANYTHING = {"type": "object"}


def fits(value: Any, schema: Any, root: Any) -> bool:
    """A validator of the keywords above."""
    if "$ref" in schema:
        return fits(value, root["$defs"]["friend"], root)
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    if "anyOf" in schema:
        return any(fits(value, each, root) for each in schema["anyOf"])
    types = {
        "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
        "null": type(None),
    }  # fmt: skip
    wanted = schema.get("type", list(types))
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if not any(
        isinstance(value, types[kind]) and (kind == "boolean" or type(value) is not bool) for kind in wanted
    ):
        return False
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        inner = [known.get(name, {} if more is True else more) for name in value]
        whole = set(schema.get("required", ())) <= set(value) and False not in inner
        return whole and all(fits(v, s, root) for v, s in zip(value.values(), inner, strict=True))
    if isinstance(value, list):
        count = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1000)
        return count and all(fits(each, schema.get("items", {}), root) for each in value)
    return True


WORDS = [
    b'{"',
    b'":',
    b'"}',
    b"},",
    b"true",
    b"null",
    b"abc",
    b", ",
    b"\n  ",
    b"\xc3",
    b'"name"',
    b"12",
    b'"]}',
    b"\\u00",
]
SPELLINGS = [*(bytes([i]) for i in range(256)), *WORDS, b""]
TREE = TokenTree(enumerate(SPELLINGS), len(SPELLINGS))


def written(schema: Any, seed: int, most: int = 400) -> str | None:
    """A text of random tokens that are allowed, closing ones being likelier the longer it is; None if it has no end."""
    rng = np.random.default_rng(seed)
    constraint = JsonConstraint(Schema(schema).value, TREE)
    text = b""
    closing = [i for i, spelling in enumerate(SPELLINGS) if spelling[:1] in (b"}", b"]", b'"')]
    for step in range(most):
        scores = rng.normal(size=len(SPELLINGS)).astype(np.float32)
        scores[closing] += step / 20
        token = int(constraint.limit(scores).argmax())
        constraint.push(token)
        text += SPELLINGS[token]
        if constraint.complete:
            return text.decode()
    return None


@pytest.mark.parametrize("schema", [PERSON, TABLE, ANYTHING], ids=["person", "table", "anything"])
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_what_is_allowed_satisfies_the_schema(schema: Any, seed: int) -> None:
    text = written(schema, seed)
    assert text is None or fits(json.loads(text), schema, schema), text


def test_texts_come_to_an_end() -> None:
    for schema in (PERSON, TABLE, ANYTHING):
        assert sum(written(schema, seed) is not None for seed in range(4)) >= 2


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('{"name": "x", "tags":["a"]}', True),
        (
            '{"name":"\\u00e9é🙂\\n","age":-10,"tags": ["bé", 3,null], "size": 1.5e-3, "friend": {"of":{}}}',
            True,
        ),
        ('{"name":"x","tags":["a"]', False),
        ('{"name":"x"}', None),  # tags are required
        ('{"tags":["a"],"name":"x"}', None),  # in another order
        ('{"name":"x","tags":[]}', None),
        ('{"name":"x","tags":["a","a","a","a"]}', None),
        ('{"name":"x","age":01', None),
        ('{"name":"\\ud83d', None),
        ('{"name":"x","tags":["a"],"more"', None),
        ('{"name":1', None),
        ("{,", None),
        ("[", None),
    ],
)
def test_single_texts(text: str, whole: bool | None) -> None:
    """Whether a text is complete, or can be continued; None if it cannot."""
    state: Any = begin(Schema(PERSON).value)
    for byte in text.encode():
        state = advance(state, byte)
    assert (None if not state else state == {None}) == whole


def test_bytes_that_are_no_utf8_cannot_follow() -> None:
    start: Any = begin(Schema(ANYTHING).value)
    for byte in b'{"':
        start = advance(start, byte)
    for wrong in (b"\x80", b"\xc0\x80", b"\xed\xa0", b"\xf4\x90", b"\xff", b"\n", b"\xc3("):
        state = start
        for byte in wrong:
            state = advance(state, byte)
        assert not state


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "properties": {"a": {"pattern": "x"}}}, "schema/properties/a: keyword 'pattern'"),
        ({"type": "object", "minProperties": 1}, "keyword 'minProperties' is not supported"),
        ({"type": "string"}, 'type is not "object"'),
        ({"type": "obj"}, "type is obj"),
        ({"type": "object", "required": ["a"]}, "required is \\['a'\\]"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "leads nowhere"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x"}}}, "must begin with #"),
        ({"$ref": "#"}, "leads to itself"),
        ({"type": "object", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, "leads to itself"),
        ({"type": "object", "properties": {"a": {"type": "array", "minItems": 3, "maxItems": 2}}}, "at least minItems"),
        ({"type": "object", "properties": {"a": {"enum": []}}}, "a list that is not empty"),
        ({"type": "object", "properties": [1]}, "properties is"),
        ([], "must be a schema"),
        ({"type": "object", "properties": {"a": {"type": "string", "enum": ["x", 1]}}}, "'1' in enum or const"),
        ({"type": "object", "properties": {"a": {"type": "integer", "const": True}}}, "'True' in enum or const"),
        ({"type": "object", "properties": {"a": {"enum": [1], "const": 2}}}, "const 2 .must be one of enum"),
        ({"type": "object", "properties": {"a": {"anyOf": [True], "type": "string"}}}, "type beside anyOf is not supp"),
        ({"type": "object", "anyOf": [{"required": []}]}, "type beside anyOf"),
        ({"type": "object", "properties": {"a": {"$ref": "#", "minItems": 1}}}, "minItems beside .ref is not"),
        ({"type": "object", "properties": {"a": {"enum": [[]], "minItems": 1}}}, "minItems beside enum"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Schema(schema)


def chain(levels: int, reverse: bool) -> Any:
    """Definitions that are each a choice of the next one, twice."""
    each = [{"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(levels)]
    defs = {f"d{i}": schema for i, schema in enumerate([*each, {"type": "string"}])}
    if reverse:
        defs = dict(reversed(defs.items()))
    return {"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}}


@pytest.mark.parametrize("reverse", [False, True])
def test_references_in_a_row(reverse: bool) -> None:
    """Two to the power of 30 ways lead through the first, one of them is enough."""
    assert TREE.allowed(reads(chain(30, reverse), b'{"a":"')).any()
    with pytest.raises(DataError, match="more than 64 choices"):
        Schema(chain(600, reverse))


def reads(schema: Any, text: bytes) -> Any:
    """The state after a text; empty if it cannot be."""
    state = begin(Schema(schema).value)
    for byte in text:
        state = advance(state, byte)
    return state


def test_as_many_items_as_are_allowed() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"const": 1}, "maxItems": 1000}},
    }
    assert reads(schema, b'{"a":[' + b",".join([b"1"] * 1000) + b"]")
    assert not reads(schema, b'{"a":[' + b",".join([b"1"] * 1001))
    del schema["properties"]["a"]["maxItems"]  # type: ignore[attr-defined]
    assert reads(schema, b'{"a":[' + b",".join([b"1"] * 2000))


def test_many_names_and_words_are_one_way() -> None:
    """Of a hundred, of which some begin with another."""
    words = {f"word{i}": {"type": "null"} for i in range(100)}
    state = reads({"type": "object", "properties": words}, b'{"wor')
    assert len(state) == 1 and reads({"type": "object", "properties": words}, b'{"word7":null}') == {None}
    numbers = {"type": "object", "properties": {"a": {"enum": [*range(1000), "x"]}}}
    for text in (b'{"a":1}', b'{"a":17}', b'{"a":999}', b'{"a":"x"}'):
        assert reads(numbers, text) == {None}
    assert not reads(numbers, b'{"a":1000')


def test_lists_end_at_some_depth() -> None:
    state = reads(ANYTHING, b'{"a":' + b"[" * 63)
    assert (
        state and not advance(state, ord("[")) and not advance(state, ord("{")) and advance(state, ord("]"))
    )


def test_inside_a_string_several_ways_allow_what_one_does() -> None:
    """The mask that is known beforehand is that of a walk through all tokens."""
    twice = {
        "anyOf": [
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": {"type": ["string"]}},
        ]
    }
    state = reads({"type": "object", "properties": {"a": twice}}, b'{"a":["x')
    assert len(state) == 2
    walked = np.zeros(len(SPELLINGS), bool)
    for id, spelling in enumerate(SPELLINGS[:-1]):
        after = state
        for byte in spelling:
            after = advance(after, byte)
        walked[id] = bool(after)
    assert (TREE.allowed(state) == walked).all()


def test_a_grammar_that_doubles_is_stopped() -> None:
    twice = {"type": "array", "items": {"$ref": "#/$defs/x"}}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"anyOf": [twice, dict(twice)]}},
    }
    state: Any = begin(Schema(json.loads(json.dumps(schema))).value)
    with pytest.raises(DataError, match="ways to read"):
        for byte in b'{"a":' + b"[" * 30:
            state = advance(state, byte)
