"""Texts that must be JSON: `response_format` of a conversation."""

from __future__ import annotations

from chainrule.generate.requests import Constraint
from chainrule.serve.api.errors import refused
from chainrule.serve.api.requests import ResponseFormat
from chainrule.serve.models import Served


def constraint_of(format: ResponseFormat | None, served: Served) -> Constraint | None:
    """What an answer must be."""
    if format is None or format.type == "text":
        return None
    raise refused(f"response_format: {format.type} (must be text)", "response_format", "unsupported")
