"""Where the time of a training step goes: shares of GEMM, packing, attention and so on, as a Markdown table.

    python -m benchmarks.lessons.profile [a b c] [--seconds 10]

perf samples every thread of our side of benchmarks/peers/steps.py. Threads that spin while they wait are sampled too; a
share is one of all samples. The kernels are built once more with symbols, into build/profile; a sample belongs to the
source file of the outermost function that it is in, inlined ones included, without the loops that all kernels share.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.harness import ROOT, Program, Unavailable, command_line, progress
from benchmarks.peers.steps import ROUNDS
from benchmarks.report import cpu_name, instruction_set, markdown

FOLDER = ROOT / "build" / "profile"
RATE = 499  # samples per second of each thread
KERNELS = (  # part of a source file's name and of the function's, and what it belongs to; the first that fits counts
    ("native/gemm", "column_sums", "sums over rows"),
    ("native/gemm", r"pack|join|round|transpose", "packing"),
    ("native/gemm", "", "GEMM"),
    ("ops/attention", "", "attention"),
    ("ops/gelu", "", "GELU"),
    ("ops/layernorm", "", "norms"),
    ("ops/rmsnorm", "", "norms"),
    ("cross_entropy", "", "loss"),
    ("ops/optimizers", "", "optimizer"),
    ("runtime/pool", "add_blocks", "sums over rows"),
    ("runtime/pool", "", "waiting"),
    ("native/", "", "other kernels"),
)
LIBRARIES = (  # part of a file's name
    ("kernel", "system"),
    ("libc", "copies and clearing"),
    ("numpy", "NumPy"),
    ("_native", "other kernels"),
    ("", "Python"),
)


def built() -> Path:
    """The extension with symbols, built if it is not there or older than its sources."""
    newest = max(path.stat().st_mtime for path in (ROOT / "native").rglob("*"))
    found = next(FOLDER.glob("chainrule/_native*.so"), None)
    if found is None or found.stat().st_mtime < newest:
        progress("building the kernels with symbols (some minutes)")
        shutil.rmtree(FOLDER, ignore_errors=True)
        settings = ("cmake.build-type=RelWithDebInfo", "install.strip=false")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(FOLDER),
            str(ROOT),
        ]
        subprocess.run([*command, *(word for s in settings for word in ("-C", s))], check=True)
        found = next(FOLDER.glob("chainrule/_native*.so"))
        found.touch()
    return found


def samples(config: str, seconds: float) -> tuple[Counter[tuple[str, int]], float]:
    """How often each address of each file was met, those of the extension counted from its start; ms of a step."""
    data = FOLDER / "perf.data"
    path = [FOLDER, ROOT, sysconfig.get_path("purelib")]
    program = Program("Chainrule", "benchmarks.peers.step_chainrule", "--config", config, path=path)
    start = extension_start(program.worker.pid)
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "-o", str(data)]
    watcher = subprocess.Popen([*command, "-p", str(program.worker.pid)], stderr=subprocess.DEVNULL)
    taken = 0.0
    while taken < seconds * 1e3:
        program.ask("step", ROUNDS[config][1])
        taken = sum(program.ms["step"])
    watcher.send_signal(signal.SIGINT)
    watcher.wait()
    ms = program.measured("step").median
    program.close()
    script = subprocess.run(
        ["perf", "script", "-i", str(data), "-F", "ip,dso"], capture_output=True, text=True, check=True
    )
    found = re.findall(r"([0-9a-f]+) \((.*)\)", script.stdout)
    return Counter((file, int(ip, 16) - start * ("_native" in file)) for ip, file in found), ms


def extension_start(pid: int) -> int:
    """Where the extension is in the memory of a process."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "_native" in line:
            place, _, offset, *_ = line.split()
            return int(place.split("-")[0], 16) - int(offset, 16)
    raise Unavailable("the process does not use the kernels")


def functions(extension: Path, addresses: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Source file and name of the function at each address, the outermost that is not a loop of native/simd."""
    given = sorted(set(addresses))
    done = subprocess.run(
        ["addr2line", "-a", "-i", "-f", "-C", "-e", str(extension)],
        input="\n".join(map(hex, given)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = {}
    for block in re.split(r"^0x", done.stdout, flags=re.MULTILINE)[1:]:
        address, *lines = block.splitlines()
        frames = list(zip(lines[1::2], lines[::2], strict=True))[::-1]  # place and name, the outermost first
        found[int(address, 16)] = next((f for f in frames if "native/simd/" not in f[0]), frames[0])
    return found


def kind_of(file: str, place: tuple[str, str] | None) -> str:
    if place and "native/" in place[0]:
        source, name = place
        return next(kind for part, word, kind in KERNELS if part in source and re.search(word, name))
    return next(kind for part, kind in LIBRARIES if part in file)


def shares(config: str, seconds: float, extension: Path) -> tuple[dict[str, float], float]:
    counts, ms = samples(config, seconds)
    names = functions(extension, (address for file, address in counts if "_native" in file))
    kinds: Counter[str] = Counter()
    for (file, address), count in counts.items():
        kinds[kind_of(file, names.get(address) if "_native" in file else None)] += count
    return {kind: count / kinds.total() for kind, count in kinds.items()}, ms


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("configs", nargs="*", default=list(ROUNDS), metavar="CONFIG", help="of a, b, c")
    parser.add_argument("--seconds", type=float, default=10.0, help="of steps, for each")
    args = parser.parse_args()
    for tool in ("perf", "addr2line"):
        if not shutil.which(tool):
            sys.exit(f"profile: {tool} is not installed (Debian: linux-perf, binutils)")
    extension = built()
    found = {config: shares(config, args.seconds, extension) for config in args.configs}
    order = [kind for *_, kind in (*KERNELS, *LIBRARIES)]
    kinds = sorted({kind for each, _ in found.values() for kind in each}, key=order.index)
    rows = [[kind, *(f"{each.get(kind, 0):.1%}" for each, _ in found.values())] for kind in kinds]
    header = [f"{cpu_name()} ({instruction_set()})", *(f"{c}, {ms:.0f} ms" for c, (_, ms) in found.items())]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
