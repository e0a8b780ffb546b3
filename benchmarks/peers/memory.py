"""Memory and time from a file on disk to the first token, in every format of weights.

    make bench ONLY=memory

The model is a .gguf file, or a directory, that CHAINRULE_MODEL names; without it a Llama of the sizes of SmolLM2-135M
with random weights is written as GGUF (Q8_0). Each measurement is a process of its own, the formats in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import ROOT, Measured, progress
from benchmarks.report import Row, Table, middle_and_best
from chainrule.generate.engine.weights import FORMATS

CODE = """
import json, sys, time
began = time.perf_counter()
import chainrule as cr
from chainrule.runs.load import open_model
model, tokenizer, _ = open_model(sys.argv[1], to_decode=True)
from benchmarks.harness import peak_mb, resident_mb
base = resident_mb()
cr.set_threads(int(sys.argv[3]))
texts = cr.generate.session(model, sys.argv[2])
texts.read([[1, 2, 3, 4, 5]])
seconds = time.perf_counter() - began
from chainrule.generate.engine.memory import footprint
held = resident_mb(), peak_mb(), base, time.process_time()
by_formula = footprint(model, sys.argv[2]).total(1, 5)
print(json.dumps([seconds * 1e3, *held, by_formula / 2**20, model.count()]))
"""


def measure(threads: int, quick: bool) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        path = os.environ.get("CHAINRULE_MODEL") or str(random_model(Path(folder) / "llama.gguf"))
        return measured(path, threads, 1 if quick else 7)


def measured(path: str, threads: int, rounds: int) -> Table:
    progress(f"to the first token in {len(FORMATS)} formats, {rounds} rounds")
    times: dict[str, list[float]] = {name: [] for name in FORMATS}
    found: dict[str, list[float]] = {}
    for _ in range(rounds + 1):
        for name in FORMATS:
            command = [sys.executable, "-c", CODE, path, name, str(threads)]
            ms, *found[name] = json.loads(subprocess.check_output(command, text=True, cwd=ROOT))
            times[name].append(ms)
    size = sum(file.stat().st_size for file in [Path(path), *Path(path).glob("*")] if file.is_file()) / 2**20
    table = Table(
        "Memory of inference",
        f"From a file of {size:.0f} MiB in the page cache to the first token, {found['int8'][-1] / 1e6:.0f} million "
        f"parameters, {threads} threads: median (minimum) of {rounds} in turn, processor seconds of the last; resident "
        "after the token and at most; before: Python, NumPy, this package and the tokenizer; weights and cache by "
        "formula (`generate.engine.memory`), and what is resident beyond before as a multiple of it.",
        ["weights", "first token", "processor", "resident", "at most", "before", "by formula", "ratio"],
    )
    for name, (held, peak, before, cpu, formula, _) in found.items():
        table.rows.append(
            (
                name,
                middle_and_best(Measured(name, times[name][1:])),
                f"{cpu:.2f} s",
                f"{held:.0f} MiB",
                f"{peak:.0f} MiB",
                f"{before:.0f} MiB",
                f"{formula:.0f} MiB",
                f"{(held - before) / formula:.2f}",
            )
        )
    held, formula = found["int8"][0], found["int8"][4]
    table.headlines.append(Row("memory of int8", f"{held:.0f} MiB", f"by formula {formula:.0f} MiB", "–"))
    return table


def random_model(path: Path) -> Path:
    import chainrule as cr
    from chainrule import io
    from chainrule.models import Llama, LlamaConfig
    from chainrule.text import ByteTokenizer

    cr.seed(0)
    config = LlamaConfig(
        n_layer=30, n_head=9, n_kv_head=3, n_embd=576, n_hidden=1536, vocab_size=49152, block_size=8192
    )
    io.gguf.write(Llama(config), ByteTokenizer(), path, weights="q8_0")
    return path
