"""Addresses of the microscope and the playground."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends

from chainrule.web.jobs import Jobs, Tell
from chainrule.web.microscope import causes, sides
from chainrule.web.microscope.looks import Look
from chainrule.web.microscope.words import look_at, whole
from chainrule.web.models import Models
from chainrule.web.playground import play
from chainrule.web.routes.answers import answer
from chainrule.web.runs.overview import OTHERS, READERS


@dataclass(frozen=True)
class Asked:
    """What every part of the microscope is asked with."""

    run: str
    step: int | None = None
    text: str | None = None
    target: str | None = None
    edits: str = ""


Question = Annotated[Asked, Depends()]


Looking = Callable[[Asked, Callable[[Look, Tell], Any]], Awaitable[Any]]


def routes(jobs: Jobs, models: Models) -> APIRouter:
    router = APIRouter(prefix="/api")

    async def look(asked: Asked, function: Callable[[Look, Tell], Any]) -> Any:
        def work(tell: Tell) -> Any:
            with models.at((asked.run, asked.step), tell=tell) as (loaded,):
                tell("computing", None)
                return function(look_at(loaded, asked.text, asked.target, asked.edits), tell)

        return await answer(jobs, work)

    @router.get("/models")
    async def listed(all: bool = False) -> Any:
        """Those that predict tokens, or `all` that the microscope shows."""
        families = (*READERS, *OTHERS) if all else READERS
        return await answer(jobs, lambda tell: models.listed(families))

    _text(router, look)
    _model(router, look)
    _causes(router, look)
    _compare(router, jobs, models)
    _playground(router, jobs, models)
    return router


def _text(router: APIRouter, look: Looking) -> None:
    """What happens while a text is read."""

    @router.get("/microscope/view")
    async def view(asked: Question) -> Any:
        return await look(asked, lambda seen, tell: seen.summary())

    @router.get("/microscope/attention")
    async def attention(asked: Question, block: str, cross: bool = False) -> Any:
        return await look(asked, lambda seen, tell: seen.attention(block, cross))

    @router.get("/microscope/gates")
    async def gates(asked: Question, block: str) -> Any:
        return await look(asked, lambda seen, tell: seen.gates(block))

    @router.get("/microscope/lens")
    async def lens(asked: Question) -> Any:
        return await look(asked, lambda seen, tell: seen.lens(tell))

    @router.get("/microscope/neurons")
    async def neurons(asked: Question, block: str) -> Any:
        return await look(asked, lambda seen, tell: seen.neurons(block))

    @router.get("/microscope/value")
    async def value(asked: Question, call: str) -> Any:
        return await look(asked, lambda seen, tell: seen.value(call))

    @router.get("/microscope/words")
    async def words(asked: Question) -> Any:
        return await look(asked, lambda seen, tell: whole(seen))

    @router.get("/microscope/window")
    async def window(asked: Question, at: int) -> Any:
        return await look(asked, lambda seen, tell: seen.window(at))


def _model(router: APIRouter, look: Looking) -> None:
    """What does not depend on the text."""

    @router.get("/microscope/heads")
    async def heads(asked: Question) -> Any:
        return await look(asked, lambda seen, tell: seen.heads())

    @router.get("/microscope/architecture")
    async def architecture(asked: Question) -> Any:
        return await look(asked, lambda seen, tell: seen.architecture())


def _causes(router: APIRouter, look: Looking) -> None:
    """Where a prediction comes from."""

    @router.get("/microscope/causes")
    async def caused(asked: Question, token: int, at: int, other: str | None = None) -> Any:
        return await look(asked, lambda seen, tell: causes.causes(seen, token, at, other))

    @router.get("/microscope/ablation")
    async def ablation(asked: Question, cross: bool = False) -> Any:
        return await look(asked, lambda seen, tell: causes.ablation(seen, cross, tell))

    @router.get("/microscope/patching")
    async def patching(
        asked: Question,
        other: str,
        at: int = -1,
        part: str = "stream",
        right: int | None = None,
        wrong: int | None = None,
    ) -> Any:
        return await look(
            asked, lambda seen, tell: causes.patching(seen, other, (right, wrong), part, at, tell)
        )


def _compare(router: APIRouter, jobs: Jobs, models: Models) -> None:
    @router.get("/microscope/compare")
    async def compare(asked: Question, against: str, against_step: int | None = None) -> Any:
        def work(tell: Tell) -> Any:
            wanted = (asked.run, asked.step), (against, against_step)
            with models.at(*wanted, tell=tell) as (loaded, other):
                tell("computing", None)
                return sides.side_by_side(look_at(loaded, asked.text, asked.target), other)

        return await answer(jobs, work)


def _playground(router: APIRouter, jobs: Jobs, models: Models) -> None:
    @router.post("/playground")
    async def write(form: Annotated[dict[str, Any], Body()]) -> Any:
        asked = play.Form.of(form)

        def work(tell: Tell) -> Any:
            with models.at((asked.run, asked.step), tell=tell) as (loaded,):
                tell("computing", None)
                return play.answer(loaded, asked, tell)

        return await answer(jobs, work)
