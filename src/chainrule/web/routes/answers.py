"""An answer from a thread: the result of a function, or the job to watch if it takes longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from chainrule import __version__
from chainrule.files import plain
from chainrule.web.jobs import Canceled, Job, Jobs, Tell, watched

PATIENCE = 0.4  # seconds that a request waits; then the page gets a job to watch


async def answer(jobs: Jobs, function: Callable[[Tell], Any]) -> Any:
    """The result of `function(tell)` run in a thread; of one that takes longer, the job to watch."""
    return await _waited(jobs, jobs.start(function))


async def computed(jobs: Jobs, said: str, function: Callable[[], Any]) -> Any:
    """The same of a function that takes long and does not say how far it is."""

    def work(tell: Tell) -> Any:
        with watched(tell, said):
            return function()

    return await answer(jobs, work)


async def _waited(jobs: Jobs, job: Job) -> Any:
    if await asyncio.to_thread(job.wait, PATIENCE):
        try:
            return plain(jobs.take(job))  # JSON has no NaN
        except Canceled:
            return {"canceled": True}  # what was asked for, and so no failure
    return JSONResponse({"job": job.id, "said": job.said, "fraction": job.fraction}, 202)


def routes(jobs: Jobs) -> APIRouter:
    """Whether it is ready, and jobs."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "version": __version__}

    @router.get("/api/jobs/{id}")
    async def watch(id: str) -> Any:
        return await _waited(jobs, jobs.get(id))

    @router.delete("/api/jobs/{id}")
    async def cancel(id: str) -> dict[str, Any]:
        jobs.get(id).cancel()
        return {"canceled": id}

    return router
