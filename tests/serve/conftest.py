"""A real server on a free port, with tiny models."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import chainrule as cr
from chainrule.random import seeded
from chainrule.serve.http.address import bound
from chainrule.serve.http.app import create_app
from chainrule.serve.http.server import Uvicorn
from chainrule.serve.models import Models, Served
from chainrule.text import CharTokenizer, WordPieceTokenizer
from chainrule.text.chat.roles import chat_tokenizer

LETTERS = "".join(chr(i) for i in range(32, 127)) + "\n"
CONTEXT = 2048


def writing_model(vocab_size: int, context: int = CONTEXT, seed: int = 1) -> Any:
    """A GPT whose next token is anything but certain."""
    config = cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=32, block_size=context, vocab_size=vocab_size)
    with seeded(seed):
        model = cr.models.GPT(config)
    rng = np.random.default_rng(seed)
    model.load({key: value + 0.2 * rng.normal(size=value.shape) for key, value in model.state().items()})
    return model


class Serving:
    """A server in a thread, a client of it, and the log."""

    def __init__(self, models: list[Served], **options: Any) -> None:
        self.log: list[dict[str, Any]] = []
        self.models = models
        sock = bound("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        ready = threading.Event()
        self.app: Any = create_app(Models(models), log=lambda **line: self.log.append(line), **options)
        self.uvicorn = Uvicorn(self.app, ready.set)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.uvicorn.serve([sock])), daemon=True)
        self.thread.start()
        assert ready.wait(20)
        self.client = httpx.Client(base_url=self.url, timeout=30)

    @property
    def server(self) -> Any:
        return self.app.app.state.server

    def post(self, path: str, **body: Any) -> Any:
        """The answer to a request that is all right."""
        found = self.client.post(path, json=body)
        assert found.status_code == 200, found.text
        return found.json()

    def refused(self, path: str, status: int = 400, **body: Any) -> dict[str, Any]:
        """The error of a request that is not."""
        found = self.client.post(path, json=body)
        assert found.status_code == status, found.text
        return found.json()["error"]

    def complete(self, **body: Any) -> Any:
        return self.post("/v1/completions", **body)

    def close(self) -> None:
        self.client.close()
        self.uvicorn.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for what must become true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def char_model(name: str = "tiny", **options: Any) -> Served:
    tokenizer = chat_tokenizer(CharTokenizer(LETTERS))
    return Served(name, writing_model(tokenizer.vocab_size), tokenizer, **options)


@pytest.fixture(scope="session")
def serving() -> Iterator[Serving]:
    """A model that chats, one without a template, and one for embeddings."""
    plain = CharTokenizer(LETTERS)
    words = WordPieceTokenizer.train("the cat sat on the mat and the dog", 60)
    bert = cr.models.make("bert", n_layer=1, n_head=2, n_embd=16, vocab_size=words.vocab_size)
    models = [
        char_model(slots=4, queue=24),
        Served("plain", writing_model(plain.vocab_size, 64, seed=2), plain, slots=2, queue=4),
        Served("bert", bert, words, queue=4),
    ]
    found = Serving(models)
    yield found
    found.close()
