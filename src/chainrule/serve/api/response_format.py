"""`response_format`: any text, a JSON object, or JSON of a schema."""

from __future__ import annotations

import json
from functools import lru_cache

from chainrule.errors import DataError
from chainrule.generate.requests import Constraint
from chainrule.serve.api.errors import refused
from chainrule.serve.api.requests import ResponseFormat
from chainrule.serve.constraints.schema import Schema
from chainrule.serve.constraints.tokens import JsonConstraint
from chainrule.serve.limits import LIMITS
from chainrule.serve.models import Served


def constraint_of(format: ResponseFormat | None, served: Served) -> Constraint | None:
    """What an answer must be; None for any text."""
    if format is None or format.type == "text":
        return None
    schema: object = {"type": "object"}
    if format.type == "json_schema":
        if format.json_schema is None or format.json_schema.schema_ is None:
            rule = 'must have json_schema: {"name": ..., "schema": {...}}'
            raise refused(f"response_format: no schema ({rule})", "response_format")
        schema = format.json_schema.schema_
    try:
        text = json.dumps(schema, allow_nan=False)
    except ValueError:
        raise refused(
            "response_format: a number that is not finite (JSON has none)", "response_format"
        ) from None
    if len(text) > LIMITS.schema_bytes:
        rule = f"must be at most {LIMITS.schema_bytes:,} bytes"
        raise refused(f"response_format: a schema of {len(text):,} bytes ({rule})", "response_format")
    try:
        return JsonConstraint(compiled(text).value, served.token_tree)
    except DataError as error:
        raise refused(f"response_format: {error}", "response_format") from None


@lru_cache(maxsize=32)  # what is known of its states is used again
def compiled(schema: str) -> Schema:
    return Schema(json.loads(schema))
