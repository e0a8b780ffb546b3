"""Addresses of the lessons."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from chainrule.errors import ConfigError
from chainrule.web.calculus import derivations
from chainrule.web.jobs import Jobs
from chainrule.web.lessons import figures, reading
from chainrule.web.routes.answers import answer, computed

LONGEST = 300  # characters of an answer


def routes(jobs: Jobs) -> APIRouter:
    router = APIRouter(prefix="/api")

    @router.get("/lessons")
    async def listed() -> Any:
        return await answer(jobs, lambda tell: [lesson.line() for lesson in reading.lessons().values()])

    @router.get("/lessons/{name}")
    async def lesson(name: str) -> Any:
        return await answer(jobs, lambda tell: reading.whole(name))

    @router.get("/lessons/{name}/check")
    async def check(name: str, reply: str, exercise: int = 0) -> Any:
        found = reading.lesson(name).exercises
        if not 0 <= exercise < len(found):
            raise ConfigError(f"lesson {name}: no exercise {exercise} (there are {len(found)}, from 0)")
        if len(reply) > LONGEST:
            raise ConfigError(f"answer: {len(reply)} characters (at most {LONGEST})")
        judged = found[exercise].judge(reply)
        return judged | {"more": derivations.inline(judged["more"])}

    @router.get("/derivations/{name}")
    async def derivation(name: str) -> Any:
        return await answer(jobs, lambda tell: derivations.blocks_of(name))

    @router.get("/figures")
    async def known() -> Any:
        return [
            {"name": name, "title": each.title, "about": each.about} for name, each in figures.FIGURES.items()
        ]

    @router.get("/figures/{name}")
    async def figure(request: Request, name: str) -> Any:
        given = dict(request.query_params)
        return await computed(jobs, "computing the figure", lambda: figures.drawn(name, given))

    return router
