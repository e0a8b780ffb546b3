"""The server of the Studio: the page, the routes that views ask, and errors in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from mimetypes import guess_type
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from chainrule import __version__
from chainrule.errors import ChainruleError
from chainrule.web.bundle import PAGE, one_file, page, views
from chainrule.web.guard import HEADERS, Guard
from chainrule.web.jobs import Jobs
from chainrule.web.models import Models
from chainrule.web.routes import answers, calculus, lab, lessons, tokens
from chainrule.web.routes import models as model_routes
from chainrule.web.routes import runs as run_routes
from chainrule.web.runs.overview import Runs
from chainrule.web.runs.plan import Refused
from chainrule.web.runs.processes import Trainings


def create_app(folder: Path = Path("runs"), deep: bool = True) -> FastAPI:
    """The Studio on a directory of runs, and unless not `deep` all below it; `GET /health` answers when it is ready."""
    jobs, runs, trainings = Jobs(), Runs(folder, deep), Trainings(folder)
    models = Models(runs)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.close()
        trainings.close()

    # No schema pages: they would load scripts from elsewhere.
    app = FastAPI(title="Chainrule Studio", version=__version__, openapi_url=None, lifespan=life)
    app.add_middleware(Guard)
    app.add_route("/static/{path:path}", static)
    _errors(app)
    routers = (
        answers.routes(jobs),
        run_routes.routes(jobs, runs, trainings),
        model_routes.routes(jobs, models),
        tokens.routes(jobs),
        calculus.routes(jobs),
        lab.routes(jobs, models),
        lessons.routes(jobs),
    )
    for router in routers:
        app.include_router(router)
    _pages(app)
    return app


async def static(request: Request) -> Response:
    """A file of the page. They are small: read at once, one costs half of what a stream through threads does."""
    try:
        found = (PAGE / request.path_params["path"]).resolve()
        there = found.is_relative_to(PAGE.resolve()) and found.is_file()
    except (OSError, ValueError):  # no path at all: too long, or with a character that none can have
        there = False
    if not there:
        raise HTTPException(404, f"{request.url.path[:80]}: no such file")
    status = found.stat()
    headers = {"ETag": f'"{status.st_mtime_ns:x}-{status.st_size:x}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(found.read_bytes(), media_type=guess_type(found)[0], headers=headers)


def _errors(app: FastAPI) -> None:
    @app.exception_handler(ChainruleError)
    async def refused(_: Request, error: ChainruleError) -> Response:
        about = {"fields": [*error.fields]} if isinstance(error, Refused) else {}
        return JSONResponse({"error": str(error)} | about, 400)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return JSONResponse({"error": f"{where}: {first['msg']}"}, 400)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": str(error.detail)}, error.status_code)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": f"the Studio failed: {type(error).__name__}: {error}"}, 500, HEADERS)


def _pages(app: FastAPI) -> None:
    """Every view has an address of its own; the same page shows it."""

    @app.get("/favicon.ico")
    async def icon() -> Response:
        return FileResponse(PAGE / "icon.svg", media_type="image/svg+xml")

    @app.get("/api/page")
    async def bundle() -> Response:
        return HTMLResponse(one_file())

    @app.get("/{path:path}")
    async def view(path: str) -> Response:
        if path.startswith("api/"):
            raise HTTPException(404, f"/{path[:80]}: no such address")
        below = {each: module for each, module in views().items() if each != "/" or not path}
        found = [module for each, module in below.items() if f"/{path}/".startswith(f"{each.rstrip('/')}/")]
        return HTMLResponse(page(found[0] if found else None), 200 if found else 404)
