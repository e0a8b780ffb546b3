"""Addresses of the token views."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from chainrule.web import tokens
from chainrule.web.jobs import Jobs
from chainrule.web.routes.answers import answer


def routes(jobs: Jobs) -> APIRouter:
    router = APIRouter(prefix="/api/tokens")

    @router.get("/about")
    async def about() -> Any:
        return {
            "example": tokens.EXAMPLE,
            "sizes": tokens.SIZES,
            "corpus": tokens.CORPUS,
            "talk": tokens.TALK,
        }

    @router.get("/pieces")
    async def pieces(text: str, size: int = 1000) -> Any:
        return await answer(jobs, lambda tell: tokens.pieces(text, size, tell))

    @router.get("/merges")
    async def merges(text: str) -> Any:
        return await answer(jobs, lambda tell: tokens.merges(text, tell))

    @router.get("/mask")
    async def mask(text: str, size: int = 1000, window: int | None = None) -> Any:
        return await answer(jobs, lambda tell: tokens.masked(text, size, window, tell))

    return router
