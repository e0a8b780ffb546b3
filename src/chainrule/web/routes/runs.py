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
from chainrule.errors import ConfigError
from chainrule.runs import RunFolder
from chainrule.web.jobs import Jobs, Tell, watched
from chainrule.web.routes.answers import answer
from chainrule.web.runs.findings import said
from chainrule.web.runs.live import Live
from chainrule.web.runs.overview import Runs
from chainrule.web.runs.plan import FAMILIES, OPTIONS, QUICK, Plan, Refused, reviewed
from chainrule.web.runs.processes import Trainings
from chainrule.web.runs.replays import Replays

TICK = 0.5  # seconds between looks at a log
ALIVE = 15.0  # seconds after which a silent stream says that it is there


def routes(jobs: Jobs, runs: Runs, trainings: Trainings) -> APIRouter:
    router = APIRouter(prefix="/api")
    _lists(router, jobs, runs, trainings)
    _trainings(router, jobs, runs, trainings)
    _one(router, jobs, runs, trainings)  # the last: its name may be any path
    return router


def _lists(router: APIRouter, jobs: Jobs, runs: Runs, trainings: Trainings) -> None:
    """All runs, and some of them side by side."""

    @router.get("/runs")
    async def listed() -> Any:
        def work(tell: Tell) -> Any:
            lines = [line | {"process": trainings.state(line["name"])} for line in runs.listed()]
            return {"folder": str(runs.folder), "runs": lines, "waiting": trainings.waiting()}

        return await answer(jobs, work)

    @router.get("/runs-compare")
    async def compared(run: Annotated[list[str], Query()]) -> Any:
        return await answer(jobs, lambda tell: runs.compared(run))


def _trainings(router: APIRouter, jobs: Jobs, runs: Runs, trainings: Trainings) -> None:
    """Starting, stopping and resuming."""

    @router.get("/train")
    async def form() -> Any:
        corpora = [{"name": name, "about": about} for name, about in data.corpora.available().items()]
        return {"families": FAMILIES, "options": OPTIONS, "corpora": corpora, "quick": QUICK}

    @router.post("/train/check")
    async def check(form: Annotated[dict[str, Any], Body()]) -> Any:
        def work(tell: Tell) -> Any:
            found = reviewed(form)
            if any("name" in problem["fields"] for problem in found["problems"]):
                return found
            try:
                trainings.check_name(str(form.get("name") or "").strip())
            except Refused as error:
                found["problems"].append({"error": str(error), "fields": [*error.fields]})
            return found

        return await answer(jobs, work)

    @router.post("/train/forecast")
    async def forecast(form: Annotated[dict[str, Any], Body()]) -> Any:
        plan = Plan.of(form)
        return await answer(jobs, plan.forecast)

    @router.post("/train")
    async def start(form: Annotated[dict[str, Any], Body()]) -> Any:
        plan = Plan.of(form)
        await asyncio.to_thread(plan.asked)
        return {"name": await asyncio.to_thread(trainings.start, plan)}

    @router.post("/stop/{name:path}")
    async def stop(name: str) -> Any:
        runs.path(name)
        trainings.stop(name)
        return {"stopped": name}

    @router.post("/resume/{name:path}")
    async def resume(name: str) -> Any:
        history = await asyncio.to_thread(runs.history, name)
        if history.state == "finished":
            rule = "it has made all its steps: start a new run with more of them"
            raise ConfigError(f"run {name}: is finished after {history.steps:,} steps ({rule})")
        await asyncio.to_thread(trainings.resume, name, history.family)
        return {"resumed": name}


def _one(router: APIRouter, jobs: Jobs, runs: Runs, trainings: Trainings) -> None:
    """One run: its log as it grows, its steps, what the doctor says, and what does not change."""
    replays = Replays()

    @router.get("/runs/{name:path}/events")
    async def follow(request: Request, name: str) -> StreamingResponse:
        path = runs.path(name)
        told = events(request, path, name, trainings, runs)
        return StreamingResponse(told, media_type="text/event-stream")

    @router.get("/runs/{name:path}/replay")
    async def replay(name: str, step: int) -> Any:
        folder = (await asyncio.to_thread(runs.history, name)).folder
        return await answer(jobs, lambda tell: replays.step(folder, step, tell))

    @router.get("/runs/{name:path}/replay-array")
    async def replay_array(name: str, step: int, array: str) -> Any:
        folder = (await asyncio.to_thread(runs.history, name)).folder
        return await answer(jobs, lambda tell: replays.array(folder, step, array, tell))

    @router.get("/runs/{name:path}/doctor")
    async def doctor(name: str) -> Any:
        folder = (await asyncio.to_thread(runs.history, name)).folder
        return await answer(jobs, lambda tell: _examined(folder, tell))

    @router.get("/runs/{name:path}")
    async def whole(name: str) -> Any:
        process = trainings.state(name)
        begun = process is not None and (process["alive"] or process["problem"])  # else it was deleted since
        if process is not None and begun and not RunFolder(runs.path(name)).log.exists():
            state = "starting" if process["alive"] else "failed"
            empty = {"settings": {}, "machine": {}, "python": ""}
            return {"name": name, "state": state, "problem": process["problem"], **empty}
        return await answer(jobs, lambda tell: runs.whole(name))


async def events(request: Any, path: Path, name: str, trainings: Trainings, runs: Runs) -> AsyncIterator[str]:
    """A snapshot whenever the log or the process has changed."""
    live = Live(path)
    before, was, silent = None, None, 0.0
    while not await request.is_disconnected():
        changed = await asyncio.to_thread(live.update)
        process = trainings.state(name)
        state = (live.files.busy, process)
        if changed or state != before:
            alive = (state[0], process and process["alive"])
            if live.files.log.exists() and (not live.settings or alive != was):
                was, live.settings = alive, (await asyncio.to_thread(runs.history, name)).settings
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

    with watched(tell, "examining the newest checkpoint"):
        title, findings = of_run(folder)
    return {"title": title, "findings": [said(finding) for finding in findings]}
