"""Commands started by mpiexec, as a user starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

MPIEXEC = Path(sys.executable).with_name("mpiexec")
TIMEOUT = 240  # seconds: ranks that wait for each other share the cores of a busy machine


def start(ranks: int, *words: str) -> subprocess.Popen[str]:
    """`mpiexec -n RANKS python WORDS`, one thread each."""
    environment = {**os.environ, "CHAINRULE_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def together(ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
    """The same, to its end."""
    process = start(ranks, *words)
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def train(ranks: int, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`chainrule train gpt` by several ranks."""
    return together(ranks, "-m", "chainrule.cli", "train", "gpt", *words, "--out", str(folder))


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def losses(folder: Path) -> list[float]:
    """Of steps and of evaluations, in order."""
    return [r.get("loss", r.get("validation")) for r in records(folder) if "loss" in r or "validation" in r]
