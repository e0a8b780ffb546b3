"""A server in a process of its own, and what the system says of it."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.peers.decode import LLAMA135

MODELS = {
    "small": {
        "n_layer": 4,
        "n_head": 4,
        "n_kv_head": 2,
        "n_embd": 256,
        "n_hidden": 704,
        "block_size": 1024,
        "vocab_size": 4096,
    },
    "llama135": LLAMA135 | {"block_size": 1024},
}


def make_model(name: str, folder: Path) -> Path:
    """A Llama with random weights, and a letter for each of its tokens, as a directory of Hugging Face's."""
    import chainrule as cr
    from chainrule.io.hf.pretrained import save_pretrained

    if not folder.exists():
        sizes = MODELS[name]
        cr.seed(0)
        letters = [chr(0x20000 + i) for i in range(sizes["vocab_size"])]
        model = cr.models.Llama(cr.models.LlamaConfig(**sizes))
        save_pretrained(model, cr.text.CharTokenizer("".join(letters)), folder)
    return folder


class Serving:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    @property
    def memory_mb(self) -> float:
        """Resident now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else float("nan")

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


@contextmanager
def serving(model: Path, *flags: str, threads: int = 2) -> Iterator[Serving]:
    command = [sys.executable, "-m", "chainrule.cli", "serve", f"model={model}", "--port", "0", *flags]
    environment = {"CHAINRULE_THREADS": str(threads), "PATH": ""}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        assert process.stdout
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        if not found:
            raise SystemExit("the server did not start")
        yield Serving(process, int(found[1]))
    finally:
        process.terminate()
        process.wait()


def percentile(values: list[float], q: float) -> float:
    return float(np.percentile(values, q)) if values else float("nan")
