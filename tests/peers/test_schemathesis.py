"""Our OpenAPI document, tried by schemathesis: no request that it can think of is answered by a 5xx.

Every answer has a status, a type and a shape that the document names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import chainrule as cr
from chainrule.serve.http.app import ROUTES
from chainrule.serve.models import Served
from chainrule.text import CharTokenizer, WordPieceTokenizer
from tests.serve.conftest import LETTERS, Serving, writing_model

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def tried() -> Iterator[Serving]:
    """Short contexts: what is asked rightly is answered soon."""
    tokenizer = CharTokenizer(LETTERS)
    words = WordPieceTokenizer.train("the cat sat on the mat and the dog", 60)
    bert = cr.models.make("bert", n_layer=1, n_head=2, n_embd=16, vocab_size=words.vocab_size)
    models = [
        Served("writes", writing_model(tokenizer.vocab_size, 32), tokenizer),
        Served("bert", bert, words),
    ]
    found = Serving(models)
    yield found
    found.close()


@pytest.mark.parametrize(("path", "method"), [(path, route[0]) for path, route in ROUTES.items()])
def test_no_request_is_the_fault_of_the_server(tried: Serving, path: str, method: str) -> None:
    document = schemathesis.openapi.from_url(f"{tried.url}/openapi.json")
    operation = document[path.replace(":path", "")][method]

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()
