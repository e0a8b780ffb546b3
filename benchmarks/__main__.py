"""Every comparison with PyTorch on this machine, written to benchmarks/RESULTS.md:        make bench

    python -m benchmarks [--quick] [--only steps kernels decode sizes]

The programs run in turn, a few steps each, so that whatever else happens on the machine hits all of them alike; what is
reported are ratios of medians. Needs PyTorch (pip install 'chainrule[peers]') and a C++ compiler for the limits.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("steps", "decode", "kernels", "sizes")


class Program:
    """A benchmark that serves requests on its standard input."""

    def __init__(self, script: str, *arguments: str) -> None:
        self.worker = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.peers.{script}", *arguments, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.info = self.answer()
        self.ms: dict[str, list[float]] = {}

    def ask(self, request: str, case: str = "") -> None:
        assert self.worker.stdin is not None
        print(request, file=self.worker.stdin, flush=True)
        reply = self.answer()
        self.ms.setdefault(case, []).extend(reply.pop("ms"))
        self.info |= reply

    def answer(self) -> dict:
        assert self.worker.stdout is not None
        line = self.worker.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(map(str, self.worker.args))}: stopped")
        return json.loads(line)

    def median(self, case: str = "") -> float:
        return statistics.median(self.ms[case])

    def close(self) -> None:
        assert self.worker.stdin is not None
        self.worker.stdin.close()
        self.worker.wait()


def progress(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def steps(threads: int, quick: bool) -> list[str]:
    lines = [
        "## Training step",
        "",
        "Forward, loss, backward, clipping, AdamW. Above 1: faster than PyTorch; memory below 1: less than PyTorch.",
        "",
        "| config | layers, heads, width, context, batch, vocabulary | ms | PyTorch eager | compiled | ratio to "
        "eager | to compiled | memory, MB | to eager | page faults per step |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    from benchmarks.peers.step_chainrule import SIZES

    plan = {"a": (12, 10), "b": (4, 2), "c": (3, 1)}
    for config, size in SIZES.items():
        rounds, count = plan[config] if not quick else (2, 1)
        common = ("--config", config, "--threads", str(threads))
        progress(f"training step {config}: starting three programs")
        ours = Program("step_chainrule", *common)
        eager = Program("step_torch", *common)
        compiled = Program("step_torch", *common, "--mode", "compile")
        for i in range(rounds):
            progress(f"training step {config}: round {i + 1} of {rounds}")
            for program in (ours, eager, compiled):
                program.ask(str(count))
        a, b, c = (program.median() for program in (ours, eager, compiled))
        memory, theirs = ours.info["rss_mb"], eager.info["rss_mb"]
        lines.append(
            f"| {config} | {', '.join(map(str, size))} | {a:.1f} | {b:.1f} | {c:.1f} | **{b / a:.2f}** | "
            f"**{c / a:.2f}** | {memory:.0f} | {memory / theirs:.2f} | {ours.info['page_faults_per_step']} |"
        )
        for program in (ours, eager, compiled):
            program.close()
    return [*lines, ""]


def half(threads: int, quick: bool) -> list[str]:
    """bf16 on the smallest size: a CPU without bf16 instructions is slow in PyTorch beyond patience."""
    common = ("--config", "a", "--threads", str(threads), "--dtype", "bf16", "--warmup", "1")
    progress("training step a in bf16")
    ours, theirs = Program("step_chainrule", *common), Program("step_torch", *common)
    for _ in range(2):
        ours.ask("5")
        theirs.ask("1")
    lines = [
        f"Config a with bf16 factors: {ours.median():.1f} ms, PyTorch's autocast {theirs.median():.1f} ms, "
        f"ratio **{theirs.median() / ours.median():.1f}**.",
        "",
    ]
    for program in (ours, theirs):
        program.close()
    return lines


def kernels(threads: int, quick: bool, limits: dict[str, float]) -> list[str]:
    from benchmarks.peers.kernels import CASES

    lines = [
        "## Kernels, forward and backward",
        "",
        "The limit is the larger of the time for the arithmetic and the time for the memory that must be moved, at the "
        "speeds of this machine above.",
        "",
        "| | ms | PyTorch | ratio | limit, ms | share of the limit |",
        "|---|---|---|---|---|---|",
    ]
    common = ("--threads", str(threads))
    ours, theirs = Program("kernels", *common), Program("kernels", "--lib", "torch", *common)
    for name, case in CASES.items():
        progress(case.title)
        for _ in range(1 if quick else 3):
            for program in (ours, theirs):
                program.ask(f"{name} {3 if quick else 7}", name)
        a, b = ours.median(name), theirs.median(name)
        bound = 1e3 * max(case.gflop / limits["gflops"], case.gigabytes / limits["copy_gb_s"])
        floor = f"{bound:.2f} | {bound / a:.2f}" if bound else "– | –"
        lines.append(f"| {case.title} | {a:.2f} | {b:.2f} | **{b / a:.2f}** | {floor} |")
    for program in (ours, theirs):
        program.close()
    return [*lines, ""]


def one_line(script: str, *arguments: str) -> dict:
    command = [sys.executable, "-m", f"benchmarks.peers.{script}", *arguments]
    return json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
    )


def decode(threads: int, quick: bool) -> list[str]:
    lines = [
        "## Inference, random weights",
        "",
        "One program after the other, not in turn.",
        "",
        "| model | weights | batch | ms per token | tokens/s | share of the read limit | PyTorch, ms | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    prefill = []
    for model in ("gpt2", "llama135"):
        peers = {}
        for dtype in ("fp32",):  # PyTorch has no fast bf16 product on a CPU without bf16 instructions
            progress(f"decode {model}, PyTorch {dtype}")
            peers[dtype] = one_line(
                "decode_torch", "--model", model, "--dtype", dtype, "--threads", str(threads)
            )
        for weights in ("fp32", "bf16", "int8", "int4"):
            progress(f"decode {model} {weights}")
            ours = one_line(
                "decode_chainrule", "--model", model, "--weights", weights, "--threads", str(threads)
            )
            theirs = peers["fp32"]
            lines.append(
                f"| {model} | {weights} | 1 | {ours['ms_per_token']:.2f} | {ours['tokens_per_s']:.1f} | "
                f"{ours['read_share']:.2f} | {theirs['ms_per_token']:.1f} (fp32) | "
                f"**{theirs['ms_per_token'] / ours['ms_per_token']:.2f}** |"
            )
            if weights == "fp32":
                ratio = theirs["prefill_ms"] / ours["prefill_ms"]
                prefill.append(
                    f"Prefill of 512 tokens, {model}, fp32: {ours['prefill_ms']:.0f} ms, PyTorch "
                    f"{theirs['prefill_ms']:.0f} ms, ratio **{ratio:.2f}**."
                )
    return [*lines, "", *prefill, ""]


def sizes() -> list[str]:
    def import_seconds(module: str) -> float:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        runs = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(5)
        ]
        return min(float(r.stdout) for r in runs)

    def megabytes(package: str) -> float:
        files = importlib.metadata.files(package) or []
        return sum(f.locate().stat().st_size for f in files if f.locate().exists()) / 1e6

    progress("import times and sizes")
    base = import_seconds("numpy")
    return [
        "## Import and size",
        "",
        f"`import chainrule` {import_seconds('chainrule'):.2f} s, of which NumPy {base:.2f} s; `import torch` "
        f"{import_seconds('torch'):.2f} s. Installed: chainrule {megabytes('chainrule'):.1f} MB, NumPy "
        f"{megabytes('numpy'):.0f} MB, PyTorch {megabytes('torch'):.0f} MB.",
        "",
    ]


def machine_limits(threads: int) -> dict[str, float]:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if not compiler:
        raise SystemExit(
            "benchmarks: no C++ compiler (c++ or $CXX) to measure the limits of the machine with"
        )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "limits"
        source = str(HERE / "limits.cpp")
        flags = ["-O3", "-march=native", "-std=c++17", "-pthread"]
        subprocess.run([compiler, *flags, source, "-o", str(program)], check=True)
        return json.loads(subprocess.run([str(program), str(threads)], capture_output=True, text=True).stdout)


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one short round of everything")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    args = parser.parse_args()
    from chainrule import native

    limits = machine_limits(args.threads)
    torch_version = importlib.metadata.version("torch")
    report = [
        "# Measured against PyTorch",
        "",
        f"{datetime.date.today()}, {cpu_name()} ({native.isa()}), {args.threads} threads, Python "
        f"{platform.python_version()}, PyTorch {torch_version}. Limits of the machine: {limits['gflops']:.0f} GFLOP/s "
        f"of fused multiply-adds, {limits['read_gb_s']:.0f} GB/s read, {limits['copy_gb_s']:.0f} GB/s copied.",
        "",
        "Repeat with `make bench`. Times drift from run to run; the ratios are of medians of programs run in turn.",
        "",
    ]
    parts = {
        "steps": lambda: steps(args.threads, args.quick) + half(args.threads, args.quick),
        "decode": lambda: decode(args.threads, args.quick),
        "kernels": lambda: kernels(args.threads, args.quick, limits),
        "sizes": sizes,
    }
    for name in args.only:  # written after each: what is measured is not lost if the next one fails
        report += parts[name]()
        args.output.write_text("\n".join(report).rstrip() + "\n", encoding="utf-8")
    progress(f"written to {args.output}")


if __name__ == "__main__":
    main()
