"""The app: routes, what each of them reads and answers, and the page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from chainrule.errors import ChainruleError
from chainrule.serve.api import tokens
from chainrule.serve.api.chat import chat
from chainrule.serve.api.completions import completion
from chainrule.serve.api.embeddings import embedder_of, embedding_response, embedding_rows
from chainrule.serve.api.errors import ApiError, api_error
from chainrule.serve.api.generation import Generation, writer_of
from chainrule.serve.api.requests import (
    Body,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    EmbeddingRequest,
    TokenizeRequest,
    parsed,
)
from chainrule.serve.batching import EmbeddingJob, Update, Worker
from chainrule.serve.http.body import read_body
from chainrule.serve.http.events import EventStream, dumped
from chainrule.serve.http.flow import Flow, watched
from chainrule.serve.http.gate import GONE, Gate, error_response, log_line, report
from chainrule.serve.http.metrics import Metrics
from chainrule.serve.http.openapi import document
from chainrule.serve.limits import LIMITS
from chainrule.serve.models import Models, Served

PAGE = Path(__file__).parents[1] / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


class Server:
    """The models, the thread that works for them, and the routes."""

    def __init__(self, models: Models, *, log_prompts: bool = False) -> None:
        self.models = models
        self.metrics = Metrics(models)
        self.worker = Worker([served.station for served in models], report)
        self.log_prompts = log_prompts

    def find(self, name: str | None) -> Served:
        """A model by its name, the first by default."""
        if name is None:
            return self.models.first
        if name not in self.models.by_name:
            known = ", ".join(self.models.by_name)
            message = f"model: {name[:100]!r} is not served (must be one of {known})"
            raise ApiError(404, message, param="model", code="model_not_found")
        return self.models.by_name[name]

    async def read(self, request: Request, kind: type[Any]) -> tuple[Any, Served]:
        """The body of a request and the model it names."""
        body = await asyncio.to_thread(parsed, kind, await read_body(request))
        served = self.find(body.model)
        facts = request.state.facts
        facts["model"] = served.name
        if self.log_prompts:
            facts["body"] = body.model_dump(exclude_none=True)
        return body, served

    # -- texts ---------------------------------------------------------------------------------------------

    async def completions(self, request: Request) -> Response:
        body, served = await self.read(request, CompletionRequest)
        return await self._generate(request, body, served, lambda: completion(body, served))

    async def chat(self, request: Request) -> Response:
        body, served = await self.read(request, ChatRequest)
        return await self._generate(request, body, served, lambda: chat(body, served))

    async def _generate(
        self, request: Request, body: Any, served: Served, make: Callable[[], Generation]
    ) -> Response:
        """Encode in another thread, since a template or a long text takes a while; then stream, or wait for all."""
        if body.stream_options is not None and not body.stream:
            raise ApiError(
                400, "stream_options: without stream (must be with stream true)", param="stream_options"
            )
        writer_of(served).check_capacity(1)  # what must wait for no thread: a full queue says so at once
        asked = await asyncio.to_thread(make)
        facts = request.state.facts
        facts["prompt_tokens"] = asked.prompt_tokens
        asked.observe = self._clock(request.state.began, facts)
        flow: Flow[Update] = Flow()
        asked.start(flow, self.worker.wake)
        if body.stream:
            return EventStream(
                flow,
                asked.events(flow),
                left=lambda error: left(error, facts),
                failed=lambda error: failed(error, facts),
            )
        with flow:
            async with watched(flow, request.receive):
                whole = await asked.whole(flow)
        return await asyncio.to_thread(answered, whole)

    def _clock(self, began: float, facts: dict[str, Any]) -> Callable[[Update], None]:
        """Counts tokens and measures the time between them."""
        last = began
        facts["completion_tokens"] = 0

        def observe(update: Update) -> None:
            nonlocal last
            now = time.perf_counter()
            if update.tokens:
                add = self.metrics.next_token if facts["completion_tokens"] else self.metrics.first_token
                add(now - last)
                last = now
            facts["completion_tokens"] += len(update.tokens)
            if update.finish:
                facts["finish"] = update.finish

        return observe

    # -- vectors and tokens --------------------------------------------------------------------------------

    async def embeddings(self, request: Request) -> Response:
        body, served = await self.read(request, EmbeddingRequest)
        embedder = embedder_of(served)
        rows = await asyncio.to_thread(embedding_rows, body, served)
        request.state.facts["prompt_tokens"] = sum(map(len, rows))
        flow: Flow[Any] = Flow()
        job = EmbeddingJob(rows, flow.tell(0))
        with flow:
            embedder.submit(job)
            flow.begun(lambda: embedder.cancel(job))
            self.worker.wake()
            async with watched(flow, request.receive):
                _, found = await flow.next()
        if isinstance(found, Exception):
            raise found
        return await asyncio.to_thread(lambda: answered(embedding_response(body, served, rows, found)))

    async def tokenize(self, request: Request) -> Response:
        body, served = await self.read(request, TokenizeRequest)
        return await asyncio.to_thread(lambda: answered(tokens.tokenize(body, served)))

    async def detokenize(self, request: Request) -> Response:
        body, served = await self.read(request, DetokenizeRequest)
        return await asyncio.to_thread(lambda: answered(tokens.detokenize(body, served)))

    async def tokenizer_info(self, request: Request) -> Response:
        served = self.find(request.query_params.get("model"))
        return await asyncio.to_thread(lambda: answered(tokens.tokenizer_info(served)))

    # -- about the server ----------------------------------------------------------------------------------

    async def list_models(self, request: Request) -> Response:
        return answered({"object": "list", "data": [tokens.model_card(served) for served in self.models]})

    async def model(self, request: Request) -> Response:
        return answered(tokens.model_card(self.find(request.path_params["name"])))

    async def health(self, request: Request) -> Response:
        if not self.worker.alive:
            raise ApiError(
                503, "serve: the thread that works has ended (restart the server)", code="not_working"
            )
        return answered({"status": "ok"})

    async def show_metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")


def left(error: BaseException, facts: dict[str, Any]) -> None:
    """The client of a stream has gone: its status has been sent, the log says what became of it."""
    facts["status"] = GONE
    facts["finish"] = "slow reader" if isinstance(error, TimeoutError) else "client left"


def failed(error: BaseException, facts: dict[str, Any]) -> None:
    """A stream went wrong after its status had been sent: the log has the status of the error."""
    facts["status"], facts["error"] = api_error(error).status, str(error)
    if facts["status"] >= 500:
        report(error)


def answered(content: dict[str, Any]) -> Response:
    return Response(dumped(content), media_type="application/json")


# Path -> method of HTTP, method of `Server`, body, response: `document` describes them.
ROUTES: dict[str, tuple[str, str, type[Body] | None, str]] = {
    "/v1/completions": ("POST", "completions", CompletionRequest, "CompletionResponse"),
    "/v1/chat/completions": ("POST", "chat", ChatRequest, "ChatResponse"),
    "/v1/embeddings": ("POST", "embeddings", EmbeddingRequest, "EmbeddingResponse"),
    "/v1/models": ("GET", "list_models", None, "ModelList"),
    "/v1/models/{name:path}": ("GET", "model", None, "ModelCard"),
    "/tokenize": ("POST", "tokenize", TokenizeRequest, "TokenizeResponse"),
    "/detokenize": ("POST", "detokenize", DetokenizeRequest, "DetokenizeResponse"),
    "/tokenizer_info": ("GET", "tokenizer_info", None, "TokenizerInfo"),
    "/health": ("GET", "health", None, "Health"),
    "/metrics": ("GET", "show_metrics", None, ""),
}


def create_app(
    models: Models,
    *,
    api_key: str | None = None,
    hosts: tuple[str, ...] = (),
    log_prompts: bool = False,
    log: Callable[..., None] = log_line,
) -> ASGIApp:
    """The whole server as an ASGI app."""
    server = Server(models, log_prompts=log_prompts)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(server.worker.close)

    @cache
    def description() -> bytes:
        return dumped(document(ROUTES))

    async def describe(request: Request) -> Response:
        return Response(await asyncio.to_thread(description), media_type="application/json")

    async def refuse(request: Request, error: Exception) -> Response:
        return error_response(error)

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = {404: "no such path (see /openapi.json)", 405: "not for this path (see /openapi.json)"}
        what = f"{request.method} {request.url.path[:100]}"
        message = f"{what}: {words.get(error.status_code, error.detail)}"
        return error_response(ApiError(error.status_code, message, headers=error.headers))

    routes = [
        Route(path, getattr(server, name), methods=[method], name=name)
        for path, (method, name, _, _) in ROUTES.items()
    ]
    routes += [Route("/openapi.json", describe), *map(page_route, sorted(PAGE.iterdir()))]
    handlers: Any = {ChainruleError: refuse, HTTPException: http_error, Exception: refuse}
    app = Starlette(routes=routes, lifespan=life, exception_handlers=handlers)
    app.state.server = server
    paths = {*ROUTES, "/", "/openapi.json"}
    most = LIMITS.pending + sum(served.capacity for served in models)
    return Gate(app, server.metrics, paths, api_key=api_key, hosts=hosts, most=most, log=log)


def page_route(file: Path) -> Route:
    """A file of the page, read once."""
    content = file.read_bytes()

    async def send(request: Request) -> Response:
        return Response(content, media_type=TYPES[file.suffix], headers={"Cache-Control": "no-cache"})

    return Route("/" if file.name == "index.html" else f"/page/{file.name}", send, name=file.name)
