"""Loads `chainrule serve` and writes benchmarks/results/serving.md.

    python -m benchmarks.serving                      a Llama of 135M random weights in q8_0, about 25 minutes
    python -m benchmarks.serving --model small --quick     a minute or two, nothing is written
    python -m benchmarks.serving --only throughput drafts  some parts, printed

From the command to the first token; clients 1, 4 and 8 beside one at a time and beside llama-server (found through
CHAINRULE_LLAMA_CPP or PATH); 1, 16 and 64 streams; minutes of steady load; clients that leave or are killed; a request
that fails inside the model; SIGTERM under load; prefixes; drafts. Exit code 1 if something does not hold that must.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import ROOT, command_line, progress
from benchmarks.report import describe_machine
from benchmarks.serving.faults import disconnects, raising, stopping
from benchmarks.serving.load import steady, streams
from benchmarks.serving.part import Part, Setting, checked
from benchmarks.serving.process import MODELS, THREADS, make_model
from benchmarks.serving.speed import drafts, prefixes, throughput
from benchmarks.serving.start import start

PARTS: dict[str, Callable[[Setting], Part]] = {
    "start": start,
    "throughput": throughput,
    "streams": streams,
    "steady": steady,
    "disconnects": disconnects,
    "raising": raising,
    "stopping": stopping,
    "prefixes": prefixes,
    "drafts": drafts,
}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", choices=MODELS, default="llama135")
    parser.add_argument("--weights", default="q8_0")
    parser.add_argument("--minutes", type=float, default=10, help="of steady load")
    parser.add_argument("--quick", action="store_true", help="few rounds, nothing is written")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end with this program
    text = f"# Serving, {args.model} in {args.weights}, random weights\n\nWritten by `python -m benchmarks.serving`. "
    text += f"{describe_machine(THREADS)}\n"
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        progress("making the model")
        model = make_model(args.model, Path(folder) / "model")
        setting = Setting(model, args.model, args.weights, args.quick, args.minutes)
        for name in args.only:
            progress(name)
            parts.append(PARTS[name](setting))
            print(parts[-1].text(), flush=True)
    text += checked(parts) + "".join(part.text() for part in parts)
    print(checked(parts))
    if not args.quick and args.only == list(PARTS):
        (ROOT / "benchmarks" / "results" / "serving.md").write_text(text)
    sys.exit(not all(check.holds for part in parts for check in part.checks))


if __name__ == "__main__":
    main()
