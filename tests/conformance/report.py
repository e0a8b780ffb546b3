"""How many of the 520 requirements the tests settle, from the records of test runs.

    python -m tests.conformance.report [--require A,B,S] build/conformance/*.json

With --require the exit code is 1 unless every requirement of these areas is settled, declared or out of scope.

A requirement is settled when at least one test is marked with it, and every test marked with it ran, passed and asserts
something. It is declared, and counted apart, when what settles it is a sentence of the docs. A record made from other
sources than the present ones, or with a C++ extension built from others, is left out; if that leaves none, the exit
code is 3.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from tests import vectors
from tests.conformance.marks import Mark, scan
from tests.conformance.record import ROOT, Record, digest, native_digest, read
from tests.conformance.requirements import out_of_scope, requirements

NO_RECORD = 3


def outcomes(records: Iterable[Record], marks: Iterable[Mark] = ()) -> dict[str, list[str]]:
    """By requirement that some test is marked with: those of its tests that settle nothing, and why."""
    found: dict[str, list[str]] = {}
    ran = set()
    for record in records:
        for entry in record.tests:
            ran.add(str(entry["test"]).partition("[")[0])
            for id in entry["requirements"]:
                bad = found.setdefault(id, [])
                if entry["outcome"] != "passed":
                    bad.append(f"{entry['test']} {entry['outcome']}")
    for mark in marks:
        for id in mark.requirements:
            bad = found.setdefault(id, [])
            if not mark.asserts:
                bad.append(f"{mark.test} asserts nothing")
            if mark.test not in ran:
                bad.append(f"{mark.test} did not run")
    return found


def lines(records: list[Record], marks: list[Mark]) -> Iterator[str]:
    found = outcomes(records, marks)
    pages = {id: mark.declared for mark in marks if mark.declared for id in mark.requirements}
    good = {id for id, bad in found.items() if not bad}
    settled, declared = good - pages.keys(), good & pages.keys()
    for (area, title), group in groupby(requirements().values(), key=lambda r: (r.area, r.title)):
        members = list(group)
        yield f"{area} {sum(r.id in settled for r in members)}/{len(members)}  {title}"
        for r in members:
            if r.id in out_of_scope():
                yield f"    {r.id} out of scope: {out_of_scope()[r.id]}"
            elif r.id in declared:
                yield f"    {r.id} declared: {pages[r.id]}"
            elif r.id not in settled:
                why = ", ".join(found[r.id]) if r.id in found else "no test"
                yield f"    {r.id} unsettled ({why}): {r.statement}. Check: {r.check}"
    used = {id for record in records for id in record.vectors}
    yield f"out of scope {len(out_of_scope())}"
    yield f"vectors used {len(used)} of {len(vectors.records())}"
    yield f"declared {len(declared)}"
    yield f"settled {len(settled)} of {len(requirements())}"


def missing(records: list[Record], marks: list[Mark], areas: set[str]) -> list[str]:
    """The requirements of these areas that are neither settled, declared nor out of scope."""
    found = outcomes(records, marks)
    return [
        r.id
        for r in requirements().values()
        if r.area in areas and r.id not in out_of_scope() and found.get(r.id, ["no test"])
    ]


def why_left_out(record: Record) -> str:
    if record.sources != digest():
        return "made from other sources"
    if record.extension not in (None, native_digest()):
        return "made with a C++ extension built from other sources"
    return ""


def main(paths: list[str]) -> int:
    areas: set[str] = set()
    if paths[:1] == ["--require"]:
        areas, paths = set(paths[1].split(",")), paths[2:]
    records = []
    for path in map(Path, paths):
        if not path.exists():
            continue
        record = read(path)
        if why := why_left_out(record):
            print(f"{path}: {why}, left out", file=sys.stderr)
        else:
            records.append(record)
    if not records:
        print("no test run of the present sources is recorded (run `make test`)", file=sys.stderr)
        return NO_RECORD
    marks = scan(ROOT)
    print("\n".join(lines(records, marks)))
    lacking = missing(records, marks, areas)
    if lacking:
        print(f"required but not settled: {', '.join(lacking)}", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
