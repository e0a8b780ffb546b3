"""Races with PyTorch, JAX, llama.cpp, tokenizers, tiktoken and gensim on this machine:        make bench

    make bench                        all of README's speed table, about half an hour on a quiet machine
    make bench ONLY=decode            one benchmark: writes its file of benchmarks/results, and its rows of README.md
    make bench ONLY="steps bpe" QUICK=1     few rounds, to see that it works; writes into build/bench

Programs take turns, a few runs each in every round, so that whatever else the machine does slows all of them alike.
Peers come with `pip install 'chainrule[peers]'`; llama.cpp is found through CHAINRULE_LLAMA_CPP (the folder of
llama-bench) or PATH. CHAINRULE_DATA is a folder of texts and vocabularies; without it the text of Python's library is
used.
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path

from benchmarks.harness import ROOT, Unavailable, command_line, progress
from benchmarks.report import (
    HEADER,
    Table,
    between_markers,
    describe_machine,
    markdown,
    not_measured,
    page,
    readme_block,
)

README = {
    "steps": 15,
    "decode": 9,
    "bpe": 4,
    "word2vec": 3,
    "kernels": 4,
    "startup": 1,
}  # its rows, in order; minutes
MORE = {"gemm": 3, "lora": 4, "dpo": 5, "seq2seq": 3, "subword": 4, "memory": 2}
MINUTES = README | MORE
RESULTS = ROOT / "benchmarks" / "results"


def arguments() -> argparse.Namespace:
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", choices=MINUTES, metavar="NAME", help=f"of {', '.join(MINUTES)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="few rounds; the figures mean nothing")
    parser.add_argument(
        "--results", type=Path, help=f"folder to write into (default {RESULTS.relative_to(ROOT)})"
    )
    parser.add_argument(
        "--readme",
        type=Path,
        help="page with the speed table (default: that of the repository, by its own results)",
    )
    return parser.parse_args()


def run(name: str, threads: int, quick: bool) -> Table:
    """Measures one; if it fails, a table that says so in its place."""
    try:
        return importlib.import_module(f"benchmarks.peers.{name}").measure(threads, quick)
    except (Unavailable, ModuleNotFoundError) as reason:
        progress(f"{name} not measured: {reason}")
        return Table(name, f"Not measured: {reason}", ["", ""], headlines=[not_measured(name, str(reason))])


def main() -> None:
    args = arguments()
    names = args.only or list(README)
    folder = args.results or (ROOT / "build" / "bench" if args.quick else RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    estimate = ", ".join(f"{name} {MINUTES[name]}" for name in names)
    progress(
        f"{'a few minutes' if args.quick else f'about {sum(map(MINUTES.get, names))} minutes: {estimate}'}"
    )
    machine, tables, began = describe_machine(args.threads), [], time.monotonic()
    for i, name in enumerate(names):
        left = sum(map(MINUTES.get, names[i:]))
        progress(f"{name} ({i + 1} of {len(names)}, {(time.monotonic() - began) / 60:.0f} min so far"
                 + ("" if args.quick else f", about {left} to go") + ")")  # fmt: skip
        table = run(name, args.threads, args.quick)
        tables.append(table)
        (folder / f"{name}.md").write_text(
            page(name, table, machine), encoding="utf-8"
        )  # before the next may fail
    headlines = [row for table in tables for row in table.headlines]
    notes = [note for table in tables for note in table.notes]
    print(machine, markdown(HEADER, headlines), *notes, sep="\n\n")
    progress(f"written to {folder}")
    if not args.quick:
        write_readme(folder, args.readme)


def write_readme(folder: Path, readme: Path | None) -> None:
    """The speed table by the pages of a folder: that of the repository, or of `readme`, if no page of it is missing."""
    if readme is None and folder.resolve() != RESULTS.resolve():
        progress(
            "README not written: the results are not those of the repository (name a page with --readme)"
        )
        return
    pages = {name: folder / f"{name}.md" for name in README}
    if missing := [name for name, path in pages.items() if not path.exists()]:
        progress(f"README not written: {folder} has no page of {', '.join(missing)} (measure these too)")
        return
    readme = readme or ROOT / "README.md"
    block = readme_block({name: path.read_text(encoding="utf-8") for name, path in pages.items()})
    text = readme.read_text(encoding="utf-8")
    readme.write_text(between_markers(text, "speed", block), encoding="utf-8")
    progress(f"speed table written to {readme}")


if __name__ == "__main__":
    main()
