"""Addresses of the calculus views."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from chainrule.errors import ConfigError
from chainrule.web.calculus import graph, ops
from chainrule.web.jobs import Jobs
from chainrule.web.routes.answers import answer


def routes(jobs: Jobs) -> APIRouter:
    router = APIRouter(prefix="/api")

    @router.get("/calculus/examples")
    async def examples() -> Any:
        return graph.EXAMPLES

    @router.get("/calculus/graph")
    async def expression(request: Request, e: str) -> Any:
        given = {key: _number(key, text) for key, text in request.query_params.items() if key != "e"}
        return await answer(jobs, lambda tell: graph.of_expression(e, given))

    @router.get("/ops")
    async def listed() -> Any:
        return ops.listed()

    @router.get("/ops/{name}")
    async def described(name: str) -> Any:
        return await answer(jobs, lambda tell: ops.described(name))

    @router.get("/ops/{name}/check")
    async def checked(request: Request, name: str, example: int = 0) -> Any:
        edits = {key: text for key, text in request.query_params.items() if key != "example"}
        return await answer(jobs, lambda tell: ops.checked(name, example, edits, tell))

    return router


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{name} is {text[:40]!r} (must be a number)") from None
