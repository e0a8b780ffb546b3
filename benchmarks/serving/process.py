"""A model to serve, a server in a process of its own, and what the system says of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import memory_mb
from benchmarks.peers.decode import LLAMA135

THREADS = 2
MODELS = {
    "tiny": {
        "n_layer": 1, "n_head": 2, "n_kv_head": 1, "n_embd": 64, "n_hidden": 96, "block_size": 1024,
        "vocab_size": 512,
    },
    "small": {
        "n_layer": 4, "n_head": 4, "n_kv_head": 2, "n_embd": 256, "n_hidden": 704, "block_size": 1024,
        "vocab_size": 4096,
    },
    "llama135": LLAMA135 | {"block_size": 1024},
}  # fmt: skip
LETTERS = [bytes([i]) for i in range(33, 127)]


def tokenizer_of(vocab_size: int) -> Any:
    """Byte-level BPE of all bytes, then two and three letters that merge: nearly every token is text by itself."""
    from chainrule.text import BPETokenizer

    tokens = [bytes([i]) for i in range(256)]
    pairs = [a + b for a, b in product(LETTERS, LETTERS)][: vocab_size - 256]
    triples = islice((pair + c for pair, c in product(pairs, LETTERS)), vocab_size - 256 - len(pairs))
    tokens += [*pairs, *triples]
    ids = {token: id for id, token in enumerate(tokens)}
    merges = [(ids[token[:-1]], ids[token[-1:]]) for token in tokens[256:]]
    return BPETokenizer(ids, merges, pattern="gpt2")


def make_model(name: str, folder: Path) -> Path:
    """A Llama with random weights as a directory of Hugging Face's, and as model.gguf in Q8_0 beside it."""
    import chainrule as cr
    from chainrule.io import gguf
    from chainrule.io.hf.pretrained import save_pretrained

    sizes = MODELS[name]
    cr.seed(0)
    model, tokenizer = cr.models.Llama(cr.models.LlamaConfig(**sizes)), tokenizer_of(sizes["vocab_size"])
    save_pretrained(model, tokenizer, folder)
    gguf.write(model, tokenizer, gguf_of(folder), weights="q8_0")
    return folder


def gguf_of(folder: Path) -> Path:
    """Where the same model is for llama.cpp."""
    return folder.with_suffix(".gguf")


class Serving:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], port: int, weights_mb: float = 0.0) -> None:
        self.process = process
        self.port = port
        self.weights_mb = weights_mb
        """By formula, as it says at its start."""

    @property
    def memory_mb(self) -> float:
        """Resident now."""
        return memory_mb("VmRSS", self.process.pid)

    @property
    def cpu_seconds(self) -> float:
        """Of all its threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics(self) -> dict[str, float]:
        """The sums over models of what /metrics says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        found: dict[str, float] = {}
        for line in lines:
            if not line.startswith("#"):
                name, value = re.sub(r"\{.*\}", "", line).split()
                found[name] = found.get(name, 0) + float(value)
        return found

    def live(self, seconds: float = 10) -> tuple[int, int]:
        """Requests that are being answered, and texts that have a slot or wait for one, once they are none

        A slot is free after the step that is under way: it is waited for, but not for long.
        """
        end = time.monotonic() + seconds
        while True:
            found = self.metrics()
            asked = int(found["chainrule_live_requests"]) - 1  # for the metrics
            texts = int(found["chainrule_running"] + found["chainrule_waiting"])
            if asked == texts == 0 or time.monotonic() > end:
                return asked, texts
            time.sleep(0.01)


@contextmanager
def serving(model: Path, *flags: str, module: str = "chainrule.cli") -> Iterator[Serving]:
    """`chainrule serve`, ready to answer; it is ended by SIGTERM."""
    command = [sys.executable, "-m", module, "serve", f"model={model}", "--port", "0", *flags]
    with running(command) as process:
        assert process.stdout
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        if not found:
            raise SystemExit(f"the server did not start: {' '.join(command)}")
        process.stdout.readline()  # an example
        said = re.search(r"([\d.,]+) MB of weights", process.stdout.readline())
        yield Serving(process, int(found[1]), float(said[1].replace(",", "")) if said else 0.0)


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A program, without a word on stderr, until the block ends."""
    environment = os.environ | {"CHAINRULE_THREADS": str(THREADS)}
    environment.pop("CHAINRULE_API_KEY", None)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def percentile(values: list[float], q: float) -> float:
    return float(np.percentile(values, q)) if values else float("nan")
