"""llama-server, llama.cpp's own server, on the same weights in Q8_0: the blocks of our q8_0.

It is looked for as llama-bench is (benchmarks/peers/decode_llama_cpp.py): in $CHAINRULE_LLAMA_CPP and on PATH.
"""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.decode_llama_cpp import find_program
from benchmarks.serving.process import THREADS, Serving, running

BODY = {"ignore_eos": True, "cache_prompt": False}
"""What its requests have beside ours: texts end by their length, and nothing is known of them before."""


@contextmanager
def llama_serving(model: Path, slots: int, context: int = 1024) -> Iterator[Serving | None]:
    """The server, with a context for each slot; None if it is not installed."""
    program = find_program("llama-server")
    if program is None:
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["-m", str(model), "-t", str(THREADS), "-c", str(slots * context), "-np", str(slots)]
    with running([program, *flags, "--port", str(port), "--log-disable"]) as process:
        end = time.monotonic() + 60
        while not _ready(port):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"llama-server did not start: {' '.join(map(str, process.args))}")
            time.sleep(0.05)
        yield Serving(process, port)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
