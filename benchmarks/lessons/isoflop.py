"""An IsoFLOP study of our GPT: several compute budgets, models of several sizes for each, three seeds, one corpus.

    python -m benchmarks.lessons.isoflop --work runs/isoflop [--workers 2]   about 13 CPU minutes
    python -m benchmarks.lessons.isoflop --tables FILE.csv ...              only the fits and the report

Runs `chainrule scale plan`, `run` and `fit`, as anybody would, and writes benchmarks/results/isoflop.csv (a row for
each run), isoflop.json (the fits, with the valleys that a figure shows) and isoflop.md (the report). Called again it
continues where it stopped. Small budgets have smaller models, large ones wider: each has both sides of its valley.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, command_line, progress
from benchmarks.report import markdown
from chainrule.runs.records.seeds import Spread

RESULTS = ROOT / "benchmarks" / "results"
TABLE, FITS, REPORT = (RESULTS / f"isoflop.{suffix}" for suffix in ("csv", "json", "md"))
RULES = "--ratio 60 --head 8 --aspect 16 --vocab-size 218 --lr 0.0015 --seeds 3"
PLANS = {
    "small": "--budgets 6e10 1.9e11 --factors 0.25 0.5 1 2 5.5",
    "large": "--budgets 6e11 --factors 0.5 1 2 5.5 9.5",
}
FORMS = {"isoflop": " --within 4", "chinchilla": "", "envelope": ""}  # and what else is said
ABOUT = """\
GPTs of several sizes for each compute budget C = 6 N D, on the sources of Python's standard library: a character a
token, windows of 128, held-out loss on 512 of them, mean ± standard error over seeds. About 13 CPU minutes in all, on
two cores that others used too, so wall times are not told. Parabolas are fitted to sizes within a factor of 4 of the
best: with all sizes the largest budget has no lowest point, because models that are too large rise as a line.
`python -m benchmarks.lessons.isoflop` repeats it; these are its commands:"""
SIZES = "--params params --tokens tokens --loss loss"


def chainrule(line: str) -> str:
    """What a command prints"""
    done = subprocess.run(
        [sys.executable, "-m", "chainrule.cli", *line.split()], check=True, capture_output=True, text=True
    )
    return done.stdout


def trained(work: Path, workers: int) -> Iterator[Path]:
    """The table of each plan, trained if it is not there"""
    for name, sizes in PLANS.items():
        plan, out = work / f"{name}.json", work / name
        if not plan.exists():
            work.mkdir(parents=True, exist_ok=True)
            chainrule(f"scale plan {sizes} {RULES} --out {plan}")
        progress(f"{name}: {sizes}")
        chainrule(f"scale run {plan} stdlib --out {out} --workers {workers}")
        yield out / "runs.csv"


def joined(tables: Sequence[Path]) -> str:
    """All runs as one table, by budget, size and seed"""
    rows: list[dict[str, str]] = []
    for path in tables:
        rows += csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    rows.sort(key=lambda row: (float(row["budget"]), int(row["params"]), int(row["seed"])))
    text = io.StringIO()
    table = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def fitted(table: Path) -> dict[str, Any]:
    """All fits, by form"""
    return {form: json.loads(chainrule(f"scale fit {table} {command(form)} --json")) for form in FORMS}


def command(form: str) -> str:
    """The flags of a fit"""
    return f"{SIZES} --form {form}{FORMS[form]}"


def by_model(table: Path) -> list[list[str]]:
    """A row for each model: its sizes, and the loss over its seeds with the standard error"""
    groups: dict[tuple[float, int], list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))):
        groups.setdefault((float(row["budget"]), int(row["params"])), []).append(row)
    return [
        [
            f"{budget:.2g}", f"{params:,}", f"{int(group[0]['tokens']):,}",
            f"{int(group[0]['tokens']) / params:.1f}", f"{float(group[0]['lr']):.2g}",
            str(Spread.of([float(row["loss"]) for row in group])),
            f"{Spread.of([float(row['bits_per_byte']) for row in group]):.3f}", str(len(group)),
        ]
        for (budget, params), group in groups.items()
    ]  # fmt: skip


def report(table: Path, fits: dict[str, Any]) -> str:
    """The page of the study"""
    columns = ["budget", "N", "D", "D/N", "rate", "nats per character", "bits per byte", "seeds"]
    valleys = [
        [f"{flops:.2g}", f"{N:,.0f}", f"{D:,.0f}", f"{D / N:.0f}", f"{loss:.4f}"]
        for flops, N, D, loss in (
            [v[name] for name in ("flops", "params", "tokens", "loss")] for v in fits["isoflop"]["valleys"]
        )
    ]
    commands = "\n".join(
        [f"    chainrule scale plan {sizes} {RULES} --out {name}.json" for name, sizes in PLANS.items()]
        + [f"    chainrule scale run {name}.json stdlib --out runs/{name}" for name in PLANS]
        + [f"    chainrule scale fit benchmarks/results/isoflop.csv {command(form)}" for form in FORMS]
    )
    parts = [
        "# An IsoFLOP study of our GPT",
        ABOUT,
        commands,
        markdown(columns, by_model(table)),
        "## The best size of each budget",
        markdown(["budget", "best N", "D", "D/N", "nats"], valleys),
        "## Exponents",
        markdown(["fit", "number", "value", "95 % interval", "standard error"], list(numbers(fits))),
        "## Doubts",
        doubts(fits),
    ]
    return "\n\n".join(parts) + "\n"


def doubts(fits: dict[str, Any]) -> str:
    """What was left out of each fit, and what stands against it"""
    said = [f"- {form}: {text}" for form in FORMS for text in fits[form]["dropped"]]
    return "\n".join(said + [f"- {form}: {r['text']}" for form in FORMS for r in fits[form]["remarks"]])


def numbers(fits: dict[str, Any]) -> Iterator[list[str]]:
    for form, found in fits.items():
        for name in found["numbers"]:
            each = found[name]
            interval = f"{each['low']:.4g} to {each['high']:.4g}"
            yield [form, name, f"{each['value']:.4g}", interval, f"{each['error']:.2g}"]


def main() -> None:
    asked = command_line(__doc__)
    asked.add_argument("--work", type=Path, default=Path("runs/isoflop"))
    asked.add_argument("--workers", type=int, default=2)
    asked.add_argument("--tables", type=Path, nargs="+", help="tables of runs that were made already")
    given = asked.parse_args()
    TABLE.write_text(joined(given.tables or list(trained(given.work, given.workers))), encoding="utf-8")
    fits = fitted(TABLE)
    FITS.write_text(json.dumps(fits, indent=1) + "\n", encoding="utf-8")
    REPORT.write_text(report(TABLE, fits), encoding="utf-8")
    progress(f"{TABLE}, {FITS.name}, {REPORT.name}")


if __name__ == "__main__":
    main()
