"""Tables: each benchmark writes one file of benchmarks/results, whose last rows go into the table of README.md.

Nobody edits what is written here: a new run replaces it. Prose is in benchmarks/NOTES.md, and around the markers of
README.md.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Measured, Unavailable

NOT_MEASURED = "not measured"
PEERS = ("torch", "jax", "tokenizers", "tiktoken", "gensim", "sentencepiece")


class Row(NamedTuple):
    """A line of README's speed table; a ratio above 1 means that Chainrule is ahead."""

    work: str
    ours: str
    peer: str
    ratio: str


HEADER = Row("", "Chainrule", "peer", "ratio")
IN_README = "## In the README"
REPLACES = "a new run replaces this file."


def not_measured(work: str, reason: str, ours: str = "–") -> Row:
    """A row that says why; in a cell of Markdown, which is one line and ends at a |"""
    cell = " ".join(reason.split()).replace("|", "&#124;")
    return Row(work, ours, f"{NOT_MEASURED}: {cell}", "–")


@dataclass
class Table:
    """What a benchmark found: a file of its own, and rows for README."""

    title: str
    about: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    headlines: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def milliseconds(ms: float) -> str:
    """Three digits, in seconds from one second on."""
    if ms >= 1000:
        return f"{ms / 1000:.2f} s"
    return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.1f} ms" if ms >= 10 else f"{ms:.2f} ms"


def middle_and_best(measured: Measured) -> str:
    return f"{milliseconds(measured.median)} ({milliseconds(measured.minimum)})"


def bold(ratio: float) -> str:
    return f"**{ratio:.2f}**"


def joined(values: Iterable[str]) -> str:
    """Like cells of several cases in one: 46 / 692 / 2519"""
    return " / ".join(values)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    for line in lines:
        if len(line) != len(header):
            raise ValueError(f"table: a row has {len(line)} cells, its header {len(header)}: {line}")
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(name: str, table: Table, machine: str, command: str = "") -> str:
    """The file of one benchmark; without a `command`, one of `make bench`."""
    command = f"Written by `{command or f'make bench ONLY={name}'}`; {REPLACES} {machine}"
    blocks = [f"# {table.title}", command, table.about, markdown(table.header, table.rows), *table.notes]
    if table.headlines:
        blocks += [IN_README, markdown(HEADER, table.headlines)]
    return "\n\n".join(blocks) + "\n"


def headlines_of(text: str) -> list[Row]:
    """The rows for README in the file of a benchmark."""
    lines = text.partition(f"\n{IN_README}\n")[2].strip().splitlines()[2:]  # without the header and its line
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def machine_of(text: str) -> str:
    """The machine that the file of a benchmark was measured on, and the day."""
    return text.split(REPLACES, 1)[1].split("\n", 1)[0].strip()


def between_markers(text: str, name: str, content: str) -> str:
    """`text` with everything between `<!-- NAME: begin -->` and `<!-- NAME: end -->` replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"markers: need {begin} and after it {end}, once each")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{content.strip()}\n{end}{rest.split(end)[1]}"


def readme_block(pages: Mapping[str, str]) -> str:
    """The speed table, from the files of benchmarks by their names: all of one run, or parts of several."""
    machines: dict[str, list[str]] = {}
    for name, text in pages.items():
        machines.setdefault(machine_of(text), []).append(name)
    whole = len(machines) == 1
    lines = [machine if whole else f"{', '.join(names)}: {machine}" for machine, names in machines.items()]
    rows = [row for text in pages.values() for row in headlines_of(text)]
    return "\n\n".join([*lines, markdown(HEADER, rows)])


# The machine


def describe_machine(threads: int) -> str:
    """One line: date, CPU, limits, versions."""
    limits = machine_limits(threads)
    today = datetime.date.today()
    versions = ", ".join(f"{name} {version(name)}" for name in PEERS if version(name))
    return (
        f"{today.day} {today:%B %Y}, {cpu_name()} ({instruction_set()}), {threads} threads, Python "
        f"{platform.python_version()}; {versions}. The machine reaches {limits['gflops']:.0f} GFLOP/s of fused "
        f"multiply-adds, reads {limits['read_gb_s']:.0f} GB/s and copies {limits['copy_gb_s']:.0f} GB/s."
    )


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def instruction_set() -> str:
    from chainrule import native

    return native.isa() or "without kernels"


def cpu_name() -> str:
    return cpu_field("model name") or platform.processor() or "unknown CPU"


def cpu_flags() -> set[str]:
    """Names of instruction sets, as Linux lists them."""
    return set(cpu_field("flags").split())


def cpu_field(name: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(name))
    except (OSError, StopIteration):
        return ""


def compiler() -> str:
    """What compiles C++ here."""
    found = os.environ.get("CXX") or shutil.which("c++")
    if not found:
        raise Unavailable("no C++ compiler (c++ or $CXX)")
    return found


@cache
def machine_limits(threads: int) -> dict[str, float]:
    """gflops, read_gb_s, copy_gb_s at best, by a small C++ program."""
    source = Path(__file__).with_name("limits.cpp")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "limits")
        flags = ["-O3", "-march=native", "-std=c++17", "-pthread"]
        subprocess.run([compiler(), *flags, str(source), "-o", str(program)], check=True)
        return json.loads(subprocess.run([program, str(threads)], capture_output=True, text=True).stdout)
