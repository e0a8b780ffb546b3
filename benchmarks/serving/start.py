"""From the command to the first token, and the memory that is resident then."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.serving.client import ask, body, check_whole
from benchmarks.serving.part import Part, Setting
from benchmarks.serving.process import MODELS, make_model, serving
from chainrule.generate.engine.memory import PAGE, footprint
from chainrule.models import Llama, LlamaConfig

FORMATS = ("fp32", "bf16", "int8", "int4", "q8_0", "q4_0")
SECONDS = 2.0
FACTOR = 1.2


def start(setting: Setting) -> Part:
    """The base is what a server of a tiny model holds: Python, NumPy, HTTP."""
    part = Part(
        "From the command to the first token, from a warm disk, and resident memory then",
        [
            "weights",
            "seconds",
            "CPU seconds",
            "weights by formula",
            "cache in use",
            "resident",
            "of it Python and HTTP",
            "rest / (weights + cache)",
        ],
    )
    rounds = 1 if setting.quick else 5
    with tempfile.TemporaryDirectory() as folder:
        tiny = make_model("tiny", Path(folder) / "tiny")
        _, _, base, _, _ = _measure(tiny, "fp32", rounds)
    token = footprint(Llama.abstract(LlamaConfig(**MODELS[setting.name]))).token
    for weights in FORMATS:
        seconds, cpu, resident, formula, pages = _measure(setting.model, weights, rounds)
        cache = pages * PAGE * token / 2**20
        ratio = (resident - base) / (formula + cache)
        sizes = [f"{size:.0f} MB" for size in (formula, cache, resident, base)]
        part.rows.append([weights, f"{seconds:.2f}", f"{cpu:.2f}", *sizes, f"{ratio:.2f}"])
        part.check(f"{weights}: first token within {SECONDS:g} s", f"{seconds:.2f} s", seconds <= SECONDS)
        part.check(
            f"{weights}: beyond the base at most {FACTOR} × weights and cache",
            f"{ratio:.2f}",
            ratio <= FACTOR,
        )
    return part


def _measure(model: Path, weights: str, rounds: int) -> tuple[float, ...]:
    """Seconds, CPU seconds, resident MB, weights in MB by formula and pages of the cache in use: medians of several
    starts, after a first one."""
    found = []
    for _ in range(1 + rounds):
        began = time.perf_counter()
        with serving(model, "--weights", weights, "--slots", "1") as server:
            check_whole(asyncio.run(ask(server.port, body(1, 1))))
            seconds = time.perf_counter() - began
            cpu, resident = server.cpu_seconds, server.memory_mb
            pages = server.metrics()["chainrule_cache_pages"]
            found.append((seconds, cpu, resident, server.weights_mb, pages))
    return tuple(statistics.median(values) for values in zip(*found[1:], strict=True))
