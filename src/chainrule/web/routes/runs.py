"""Addresses of the views of runs: lists, one run live, and starting, stopping and resuming."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import StreamingResponse

from chainrule import data
from chainrule.runs import RunFolder
from chainrule.web.jobs import Jobs, Tell
from chainrule.web.routes.answers import answer
from chainrule.web.runs.live import Live, said
from chainrule.web.runs.overview import Runs
from chainrule.web.runs.plan import FAMILIES, OPTIONS, QUICK, Plan
from chainrule.web.runs.processes import Trainings

TICK = 0.5  # seconds between looks at a log
ALIVE = 15.0  # seconds after which a silent stream says that it is there


def routes(jobs: Jobs, runs: Runs, trainings: Trainings) -> APIRouter:
    router = APIRouter(prefix="/api")

    @router.get("/runs")
    async def listed() -> Any:
        def work(tell: Tell) -> Any:
            lines = [line | {"process": trainings.state(line["name"])} for line in runs.listed()]
            return {"folder": str(runs.folder), "runs": lines, "waiting": trainings.waiting()}

        return await answer(jobs, work)

    @router.get("/runs-compare")
    async def compared(run: Annotated[list[str], Query()]) -> Any:
        return await answer(jobs, lambda tell: runs.compared(run))

    @router.get("/train")
    async def form() -> Any:
        corpora = [{"name": name, "about": about} for name, about in data.corpora.available().items()]
        return {"families": FAMILIES, "options": OPTIONS, "corpora": corpora, "quick": QUICK}

    @router.post("/train/forecast")
    async def forecast(form: Annotated[dict[str, Any], Body()]) -> Any:
        plan = Plan.of(form)
        return await answer(jobs, plan.forecast)

    @router.post("/train")
    async def start(form: Annotated[dict[str, Any], Body()]) -> Any:
        plan = Plan.of(form)
        return {"name": await asyncio.to_thread(trainings.start, plan)}

    @router.post("/stop/{name:path}")
    async def stop(name: str) -> Any:
        runs.path(name)
        trainings.stop(name)
        return {"stopped": name}

    @router.post("/resume/{name:path}")
    async def resume(name: str) -> Any:
        family = (await asyncio.to_thread(runs.history, name)).family
        await asyncio.to_thread(trainings.resume, name, family)
        return {"resumed": name}

    @router.get("/runs/{name:path}/events")
    async def follow(request: Request, name: str) -> StreamingResponse:
        path = runs.path(name)
        return StreamingResponse(events(request, path, name, trainings), media_type="text/event-stream")

    @router.get("/runs/{name:path}/doctor")
    async def doctor(name: str) -> Any:
        folder = (await asyncio.to_thread(runs.history, name)).folder
        return await answer(jobs, lambda tell: _examined(folder, tell))

    @router.get("/runs/{name:path}")
    async def whole(name: str) -> Any:
        process = trainings.state(name)
        if process is not None and not RunFolder(runs.path(name)).log.exists():
            state = "starting" if process["alive"] else "failed"
            return {"name": name, "state": state, "settings": {}, "machine": {}, "python": ""}
        return await answer(jobs, lambda tell: runs.whole(name))

    return router


async def events(request: Any, path: Path, name: str, trainings: Trainings) -> AsyncIterator[str]:
    """A snapshot whenever the log or the process has changed."""
    live = Live(path)
    before, silent = None, 0.0
    while not await request.is_disconnected():
        changed = await asyncio.to_thread(live.update)
        process = trainings.state(name)
        state = (live.files.busy, process)
        if changed or state != before:
            shown = live.snapshot() | {"process": process, "there": live.files.log.exists()}
            yield f"data: {json.dumps(shown, allow_nan=False)}\n\n"
            before, silent = state, 0.0
        elif silent > ALIVE:
            yield ": here\n\n"
            silent = 0.0
        await asyncio.sleep(TICK)
        silent += TICK


def _examined(folder: Path, tell: Tell) -> Any:
    from chainrule.cli.commands.doctor import of_run

    tell("examining the newest checkpoint", None)
    title, findings = of_run(folder)
    return {"title": title, "findings": [said(finding) for finding in findings]}
