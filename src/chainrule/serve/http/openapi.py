"""The OpenAPI document: bodies are parsed by us, so that every error is OpenAI's, and described here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from chainrule import __version__
from chainrule.serve.api.requests import Body
from chainrule.serve.api.responses import SCHEMAS

REF = "#/components/schemas/{model}"
FAILURES = {
    "400": "refused",
    "401": "no key",
    "403": "a name or a page of others",
    "404": "no such model",
    "405": "not for this path",
    "408": "the body did not come in time",
    "413": "the body is too large",
    "415": "the body is no JSON",
    "429": "queue is full",
    "500": "failed inside",
    "503": "shutting down, or works no more",
}


EVENT = {
    "type": "object",
    "properties": {"data": {"type": "string", "description": "JSON, and [DONE] at the end"}},
}
PARAMETERS = {
    "/v1/models/{name:path}": {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
    "/tokenizer_info": {"name": "model", "in": "query", "required": False, "schema": {"type": "string"}},
}


def document(routes: Mapping[str, tuple[str, str, type[Body] | None, str]]) -> dict[str, Any]:
    """/openapi.json: path -> method of HTTP, name, body, response"""
    bodies = [body for _, _, body, _ in routes.values() if body]
    kinds = [(kind, "validation") for kind in (*bodies, *SCHEMAS)]
    _, definitions = models_json_schema(kinds, ref_template=REF)  # type: ignore[arg-type]
    paths = {
        path.replace(":path", ""): {method.lower(): _operation(path, name, body, response)}
        for path, (method, name, body, response) in routes.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Chainrule", "version": __version__},
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }


def _operation(path: str, name: str, body: type[Body] | None, response: str) -> dict[str, Any]:
    kind, schema = ("application/json", _ref(response)) if response else ("text/plain", {"type": "string"})
    content: dict[str, Any] = {kind: {"schema": schema}}
    if response in ("CompletionResponse", "ChatResponse"):
        content["text/event-stream"] = {"schema": EVENT}
    answers: dict[str, Any] = {"200": {"description": "answered", "content": content}}
    for status, about in FAILURES.items():
        failed = {"application/json": {"schema": _ref("ErrorResponse")}}
        answers[status] = {"description": about, "content": failed}
    found: dict[str, Any] = {"operationId": name, "responses": answers}
    if path in PARAMETERS:
        found["parameters"] = [PARAMETERS[path]]
    if body:
        given = {"application/json": {"schema": _ref(body.__name__)}}
        found["requestBody"] = {"required": True, "content": given}
    return found


def _ref(name: str) -> dict[str, str]:
    return {"$ref": REF.format(model=name)}
