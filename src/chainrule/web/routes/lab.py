"""Addresses of the views of one idea each: n-grams, embeddings, diagnostics, alignment, scaling."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body

from chainrule.errors import ConfigError
from chainrule.models.registry import ALL
from chainrule.scaling.fits.table import QUANTITIES
from chainrule.web.jobs import Jobs, Tell
from chainrule.web.lab import alignment, diagnostics, embeddings, ngrams, scaling
from chainrule.web.models import Models
from chainrule.web.routes.answers import answer, computed


def routes(jobs: Jobs, models: Models) -> APIRouter:
    router = APIRouter(prefix="/api")
    _ngrams(router, jobs)
    _embeddings(router, jobs, models)
    _diagnostics(router, jobs, models)
    _alignment(router, jobs)
    _scaling(router, jobs)
    return router


def _ngrams(router: APIRouter, jobs: Jobs) -> None:
    @router.get("/ngrams/about")
    async def about() -> Any:
        return {
            "sources": ngrams.SOURCES,
            "methods": ngrams.METHODS,
            "orders": ngrams.ORDERS,
            "example": ngrams.EXAMPLE,
        }

    @router.get("/ngrams")
    async def counted(
        source: str = "words", own: str = "", order: int = 2, before: str = "", method: str = "mle",
        s: float = 1.0, seed: int = 0,
    ) -> Any:  # fmt: skip
        return await computed(
            jobs, "counting", lambda: ngrams.counted(source, own, order, before, method, s, seed)
        )


def _embeddings(router: APIRouter, jobs: Jobs, models: Models) -> None:
    @router.get("/embeddings/sources")
    async def sources() -> Any:
        return await answer(jobs, lambda tell: embeddings.listed(models))

    @router.get("/embeddings/positions")
    async def positions(n: int = 64, d: int = 32, base: float = 10000.0) -> Any:
        return await answer(jobs, lambda tell: embeddings.encoded(n, d, base))

    @router.get("/embeddings")
    async def shown(
        run: str = embeddings.BUILT_IN, step: int | None = None, word: str | None = None,
        a: str = "", b: str = "", c: str = "",
    ) -> Any:  # fmt: skip
        def work(tell: Tell) -> Any:
            if run == embeddings.BUILT_IN:
                vectors, learned, read = embeddings.built_in(tell), None, embeddings.LEARNED
            else:
                vectors, learned, read = embeddings.of_run(models, run, step, tell)
            found = embeddings.shown(vectors, learned, word, (a, b, c))
            return found | {"python": embeddings.program(read, found["word"], (a, b, c))}

        return await answer(jobs, work)


def _diagnostics(router: APIRouter, jobs: Jobs, models: Models) -> None:
    @router.get("/diagnostics/about")
    async def about() -> Any:
        def work(tell: Tell) -> Any:
            runs = [each for each in models.listed(tuple(ALL)) if each["steps"]]
            return diagnostics.choices() | {"runs": runs}

        return await answer(jobs, work)

    @router.get("/diagnostics/network")
    async def network(
        depth: int = 6, width: int = 128, activation: str = "tanh", draw: str = "gain", norm: str = "none",
        lr: float = 0.1,
    ) -> Any:  # fmt: skip
        return await answer(
            jobs, lambda tell: diagnostics.of_network(depth, width, activation, draw, norm, lr)
        )

    @router.get("/diagnostics/run")
    async def run(run: str) -> Any:
        return await answer(jobs, lambda tell: diagnostics.of_checkpoint(models.path(run, None), tell))


def _alignment(router: APIRouter, jobs: Jobs) -> None:
    @router.get("/alignment/about")
    async def about() -> Any:
        return alignment.choices()

    @router.get("/alignment")
    async def world(seed: int = 1, beta: float = 0.5) -> Any:
        return await answer(jobs, lambda tell: alignment.shown(seed, beta))

    @router.get("/alignment/train")
    async def train(method: str, seed: int = 1, beta: float = 0.5, steps: int = 120) -> Any:
        return await answer(jobs, lambda tell: alignment.approached(seed, method, beta, steps, tell))


def _scaling(router: APIRouter, jobs: Jobs) -> None:
    @router.get("/scaling/about")
    async def about() -> Any:
        return scaling.choices()

    @router.get("/scaling/plan")
    async def plan(compute: float, available: float | None = None, served: float | None = None) -> Any:
        return await answer(jobs, lambda tell: scaling.planned(compute, available, served))

    @router.post("/scaling/fit")
    async def fit(form: Annotated[dict[str, Any], Body()]) -> Any:
        table, columns, kind, quantity = _table(form)
        within = form.get("within")
        if within is not None and not isinstance(within, int | float):
            raise ConfigError(f"scaling: within is {within!r} (must be a number above 1)")
        return await answer(jobs, lambda tell: scaling.fitted(table, columns, kind, quantity, within, tell))

    @router.post("/scaling/predict")
    async def predict(form: Annotated[dict[str, Any], Body()]) -> Any:
        table, columns, kind, quantity = _table(form)
        sizes = form.get("sizes")
        good = isinstance(sizes, dict) and all(
            name in QUANTITIES and isinstance(x, int | float) and x > 0 for name, x in sizes.items()
        )
        if not good:
            raise ConfigError("scaling: sizes must be positive numbers of params, tokens or flops")
        return await answer(
            jobs, lambda tell: scaling.predicted(table, columns, kind, quantity, dict(sizes or {}), tell)
        )


def _table(form: dict[str, Any]) -> tuple[str | None, dict[str, str], str, str]:
    """What a fit is asked for: the text of a table, its columns, the form of the law and its quantity."""
    table, columns = form.get("table"), form.get("columns") or {}
    kind, quantity = form.get("form", "isoflop"), form.get("quantity", "params")
    words = isinstance(columns, dict) and all(isinstance(word, str) for word in (*columns, *columns.values()))
    if not (words and isinstance(kind, str) and isinstance(quantity, str) and isinstance(table, str | None)):
        raise ConfigError("scaling: must have a form, and may have a table with names of its columns")
    return table, columns, kind, quantity
