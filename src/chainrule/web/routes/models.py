"""Addresses of the microscope and the playground."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body

from chainrule.errors import ConfigError
from chainrule.web import microscope, playground
from chainrule.web.jobs import Jobs, Tell
from chainrule.web.models import Loaded, Models
from chainrule.web.routes.answers import answer
from chainrule.web.runs.overview import READERS, WRITERS


def routes(jobs: Jobs, models: Models) -> APIRouter:
    router = APIRouter(prefix="/api")

    async def look(run: str, step: int | None, function: Callable[[Loaded, Tell], Any]) -> Any:
        def work(tell: Tell) -> Any:
            tell("loading the model", None)
            with models.at(run, step) as loaded:
                tell("computing", None)
                return function(loaded, tell)

        return await answer(jobs, work)

    @router.get("/models")
    async def listed(write: bool = False) -> Any:
        return await answer(jobs, lambda tell: models.listed(WRITERS if write else READERS))

    @router.get("/microscope/view")
    async def view(run: str, text: str | None = None, step: int | None = None, off: str = "") -> Any:
        return await look(run, step, lambda loaded, tell: microscope.read(loaded, text, off))

    @router.get("/microscope/attention")
    async def attention(run: str, text: str, block: str, step: int | None = None, off: str = "") -> Any:
        return await look(run, step, lambda loaded, tell: microscope.attention(loaded, text, block, off))

    @router.get("/microscope/gates")
    async def gates(run: str, text: str, block: str, step: int | None = None) -> Any:
        return await look(run, step, lambda loaded, tell: microscope.gates(loaded, text, block))

    @router.get("/microscope/lens")
    async def lens(run: str, text: str, step: int | None = None, off: str = "") -> Any:
        return await look(run, step, lambda loaded, tell: microscope.lens(loaded, text, off))

    @router.get("/microscope/heads")
    async def heads(run: str, step: int | None = None) -> Any:
        return await look(run, step, lambda loaded, tell: microscope.heads(loaded))

    @router.get("/microscope/architecture")
    async def architecture(run: str, step: int | None = None) -> Any:
        return await look(run, step, lambda loaded, tell: microscope.architecture(loaded))

    @router.post("/playground")
    async def write(form: Annotated[dict[str, Any], Body()]) -> Any:
        run, prompt, ids = form.get("run"), form.get("prompt"), form.get("ids")
        step, length, options = form.get("step"), form.get("length", 100), form.get("options") or {}
        whole = all(type(each) is int for each in ids) if isinstance(ids, list) and ids else ids is None
        sized = (step is None or type(step) is int) and type(length) is int and isinstance(options, dict)
        if not (isinstance(run, str) and (prompt is None or isinstance(prompt, str)) and whole and sized):
            raise ConfigError("playground: must have a run, a prompt or ids of tokens, a length and options")
        return await look(
            run, step, lambda loaded, tell: playground.continued(loaded, prompt, ids, length, options, tell)
        )

    return router
