"""Texts of a grammar are JSON and satisfy the schema, whatever a model prefers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import DataError
from chainrule.serve.constraints.grammar import advance
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
    state: Any = frozenset({(Schema(PERSON).value, None)})
    for byte in text.encode():
        state = advance(state, byte)
    assert (None if not state else state == {None}) == whole


def test_bytes_that_are_no_utf8_cannot_follow() -> None:
    start: Any = frozenset({(Schema(ANYTHING).value, None)})
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
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Schema(schema)


def test_a_grammar_that_doubles_is_stopped() -> None:
    twice = {"type": "array", "items": {"$ref": "#/$defs/x"}}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"anyOf": [twice, dict(twice)]}},
    }
    state: Any = frozenset({(Schema(json.loads(json.dumps(schema))).value, None)})
    with pytest.raises(DataError, match="ways to read"):
        for byte in b'{"a":' + b"[" * 30:
            state = advance(state, byte)
