"""The server of the Studio: the page, the routes that views ask, and errors in words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from chainrule import __version__
from chainrule.errors import ChainruleError, ConfigError
from chainrule.web import tokens
from chainrule.web.calculus import graph, ops
from chainrule.web.guard import guard
from chainrule.web.jobs import Canceled, Jobs, Tell

PAGE = Path(__file__).parent / "page"
VIEWS = ("/", "/tokens", "/calculus")  # each with what is below it
PATIENCE = 0.4  # seconds that a request waits; then the page gets a job to watch


def create_app(folder: Path = Path("runs")) -> FastAPI:
    """The Studio on a directory of runs; `GET /health` answers when it is ready."""
    jobs = Jobs()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.close()

    # No schema pages: they would load scripts from elsewhere.
    app = FastAPI(title="Chainrule Studio", version=__version__, openapi_url=None, lifespan=life)
    app.middleware("http")(guard)
    app.state.jobs, app.state.folder = jobs, folder
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    _errors(app)
    _shell(app, jobs)
    _tokens(app, jobs)
    _calculus(app, jobs)
    _pages(app)
    return app


def _errors(app: FastAPI) -> None:
    @app.exception_handler(ChainruleError)
    async def refused(_: Request, error: ChainruleError) -> Response:
        return JSONResponse({"error": str(error)}, 400)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return JSONResponse({"error": f"{where}: {first['msg']}"}, 400)

    @app.exception_handler(Canceled)
    async def canceled(_: Request, __: Canceled) -> Response:
        return JSONResponse({"error": "canceled", "canceled": True}, 409)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": str(error.detail)}, error.status_code)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": f"the Studio failed: {type(error).__name__}: {error}"}, 500)


async def answer(jobs: Jobs, function: Callable[[Tell], Any]) -> Any:
    """The result of a function run in a thread; of one that takes longer, the job to watch."""
    job = jobs.start(function)
    if await asyncio.to_thread(job.wait, PATIENCE):
        return jobs.take(job)
    return JSONResponse({"job": job.id, "said": job.said, "fraction": job.fraction}, 202)


def _shell(app: FastAPI, jobs: Jobs) -> None:
    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "version": __version__}

    @app.get("/api/jobs/{id}")
    async def watch(id: str) -> Any:
        job = jobs.get(id)
        if await asyncio.to_thread(job.wait, PATIENCE):
            return jobs.take(job)
        return JSONResponse({"job": job.id, "said": job.said, "fraction": job.fraction}, 202)

    @app.delete("/api/jobs/{id}")
    async def cancel(id: str) -> dict[str, Any]:
        jobs.get(id).cancel()
        return {"canceled": id}


def _calculus(app: FastAPI, jobs: Jobs) -> None:
    @app.get("/api/calculus/examples")
    async def examples() -> Any:
        return graph.EXAMPLES

    @app.get("/api/calculus/graph")
    async def expression(request: Request, e: str) -> Any:
        given = {key: _number(key, text) for key, text in request.query_params.items() if key != "e"}
        return await answer(jobs, lambda tell: graph.of_expression(e, given))

    @app.get("/api/ops")
    async def listed() -> Any:
        return ops.listed()

    @app.get("/api/ops/{name}")
    async def described(name: str) -> Any:
        return await answer(jobs, lambda tell: ops.described(name))

    @app.get("/api/ops/{name}/check")
    async def checked(request: Request, name: str, example: int = 0) -> Any:
        edits = {key: text for key, text in request.query_params.items() if key != "example"}
        return await answer(jobs, lambda tell: ops.checked(name, example, edits))


def _tokens(app: FastAPI, jobs: Jobs) -> None:
    @app.get("/api/tokens/about")
    async def about() -> Any:
        return {"example": tokens.EXAMPLE, "sizes": tokens.SIZES, "corpus": tokens.CORPUS}

    @app.get("/api/tokens/pieces")
    async def pieces(text: str, size: int = 1000) -> Any:
        return await answer(jobs, lambda tell: tokens.pieces(text, size, tell))

    @app.get("/api/tokens/merges")
    async def merges(text: str) -> Any:
        return await answer(jobs, lambda tell: tokens.merges(text, tell))


def _pages(app: FastAPI) -> None:
    """Every view has an address of its own; the same page shows it."""
    index = partial(FileResponse, PAGE / "index.html")

    @app.get("/favicon.ico")
    async def icon() -> Response:
        return FileResponse(PAGE / "icon.svg", media_type="image/svg+xml")

    @app.get("/{path:path}")
    async def view(path: str) -> Response:
        if path.startswith("api/"):
            raise HTTPException(404, f"/{path[:80]}: no such address")
        known = any(f"/{path}" == each or f"/{path}".startswith(f"{each}/") for each in VIEWS[1:])
        return index(status_code=200 if known or not path else 404)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{name} is {text[:40]!r} (must be a number)") from None
