"""Generation: jobs for the choices of a request, run to their ends, streamed or as a whole."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from chainrule import __version__
from chainrule.serve.api.choices import Choice, Delta, joined
from chainrule.serve.api.errors import refused
from chainrule.serve.batching import Batcher, Job, Update
from chainrule.serve.http.flow import Flow, cancel_all
from chainrule.serve.models import Served

MANY = 256  # scores of an event, as of a prompt that is repeated: another thread writes it, so that no stream waits


class Shape(Protocol):
    """How the answers of an endpoint are written."""

    prefix: str
    """Of its ids."""
    object: str
    chunk: str
    """`object` of an event."""

    def choice(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        """A whole choice."""

    def event(self, choice: Choice, delta: Delta) -> dict[str, Any] | None:
        """What is new of a choice; None if it is to be sent later."""

    def opening(self, choice: Choice) -> dict[str, Any] | None:
        """The first event of a choice, before there is any text."""


@dataclass
class Generation:
    """A request for one or more texts: checked, encoded and ready to run."""

    served: Served
    shape: Shape
    choices: list[Choice]
    prompt_tokens: int
    top_of_prompt: int | None = None
    best: int = 1
    """Of so many choices for a prompt the likeliest `kept` are answered."""
    kept: int = 1
    include_usage: bool = False
    observe: Callable[[Update], None] = lambda update: None
    jobs: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.head = {
            "id": f"{self.shape.prefix}-{secrets.token_hex(12)}",
            "object": self.shape.object,
            "created": int(time.time()),
            "model": self.served.name,
            "system_fingerprint": f"chainrule-{__version__}",
        }

    def start(self, flow: Flow[Update], wake: Callable[[], None]) -> None:
        """Submit the jobs, all or none."""
        writer = writer_of(self.served)
        self.jobs = [
            Job(choice.request, flow.tell(i), top_of_prompt=self.top_of_prompt)
            for i, choice in enumerate(self.choices)
        ]
        writer.submit(self.jobs)
        flow.begun(cancel_all(writer.cancel, self.jobs))
        wake()

    async def deltas(self, flow: Flow[Update]) -> AsyncIterator[tuple[Choice, Delta]]:
        """What is new, until all choices have ended."""
        left = len(self.choices)
        while left:
            number, update = await flow.next()
            if update.error:
                raise update.error
            self.observe(update)
            left -= update.last
            choice = self.choices[number]
            if update.prompt_scores:  # of a long prompt: others must not wait
                delta = await asyncio.to_thread(choice.take, update)
            else:
                delta = choice.take(update)
            if delta:
                yield choice, delta

    async def whole(self, flow: Flow[Update]) -> dict[str, Any]:
        """The answer at once."""
        found: dict[int, list[Delta]] = {choice.index: [] for choice in self.choices}
        async for choice, delta in self.deltas(flow):
            found[choice.index].append(delta)
        return await asyncio.to_thread(self._answer, found)

    def _answer(self, found: Mapping[int, Sequence[Delta]]) -> dict[str, Any]:
        """Of all that was new of each choice; it may be long, so another thread makes it."""
        chosen = self._likeliest()
        choices = []
        for index, choice in enumerate(chosen):
            delta = joined(found[choice.index])
            choice.index = index
            choices.append(self.shape.choice(choice, delta))
        return self.head | {"choices": choices, "usage": self.usage()}

    async def events(self, flow: Flow[Update]) -> AsyncIterator[dict[str, Any]]:
        """The answer piece by piece."""
        head = self.head | {"object": self.shape.chunk} | ({"usage": None} if self.include_usage else {})
        for choice in self.choices:
            if opening := self.shape.opening(choice):
                yield head | {"choices": [opening]}
        async for choice, delta in self.deltas(flow):
            if len(delta.scored) > MANY:
                event = await asyncio.to_thread(self.shape.event, choice, delta)
            else:
                event = self.shape.event(choice, delta)
            if event:
                yield head | {"choices": [event]}
        if self.include_usage:
            yield head | {"choices": [], "usage": self.usage()}

    def _likeliest(self) -> Sequence[Choice]:
        """Of each prompt the choices with the highest ln P per token, or all of them."""
        if self.best == self.kept:
            return self.choices
        found: list[Choice] = []
        for first in range(0, len(self.choices), self.best):
            group = self.choices[first : first + self.best]
            found += sorted(group, key=lambda choice: -choice.total / max(1, choice.tokens))[: self.kept]
        return found

    def usage(self) -> dict[str, Any]:
        completion = sum(choice.tokens for choice in self.choices)
        reused = [job.reused for job in self.jobs[:: self.best]]
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": sum(reused)},
        }


def writer_of(served: Served) -> Batcher:
    """What generates text with a model."""
    if served.writer is None:
        rule = "must be a language model; this one makes embeddings"
        raise refused(f"model: {served.name} does not write ({rule})", "model")
    return served.writer


def check_jobs(served: Served, jobs: int, param: str) -> None:
    """Refuse at once what can never run, or not now, and what would leave no place to others."""
    writer = writer_of(served)
    if jobs > writer.most_jobs:
        rule = f"must be at most {writer.most_jobs} on this server: its slots and half of its queue"
        raise refused(f"{param}: {jobs} texts in one request ({rule})", param)
    writer.check_capacity(jobs)
