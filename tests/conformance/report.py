"""How many of the 520 requirements the tests settle, from the records of test runs.

    python -m tests.conformance.report [--require A,B,S] build/conformance/*.json

With --require the exit code is 1 unless every requirement of these areas is settled or out of scope.

A requirement is settled when at least one test is marked with it and every test marked with it passed.
A record made from other sources than the present ones is left out; if that leaves none, the exit code is 3.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from tests import vectors
from tests.conformance.record import Record, digest, read
from tests.conformance.requirements import out_of_scope, requirements

NO_RECORD = 3


def outcomes(records: Iterable[Record]) -> dict[str, list[str]]:
    """By requirement that some test is marked with: those of its tests that did not pass."""
    failures: dict[str, list[str]] = {}
    for record in records:
        for entry in record.tests:
            for id in entry["requirements"]:
                failed = failures.setdefault(id, [])
                if not entry["passed"]:
                    failed.append(entry["test"])
    return failures


def lines(records: list[Record]) -> Iterator[str]:
    failures = outcomes(records)
    settled = {id for id, failed in failures.items() if not failed}
    for (area, title), group in groupby(requirements().values(), key=lambda r: (r.area, r.title)):
        members = list(group)
        yield f"{area} {sum(r.id in settled for r in members)}/{len(members)}  {title}"
        for r in members:
            if r.id in out_of_scope():
                yield f"    {r.id} out of scope: {out_of_scope()[r.id]}"
            elif r.id in failures and r.id not in settled:
                yield f"    {r.id} failed: {', '.join(failures[r.id])}"
            elif r.id not in settled:
                yield f"    {r.id} unsettled: {r.statement}"
    used = {id for record in records for id in record.vectors}
    yield f"out of scope {len(out_of_scope())}"
    yield f"vectors used {len(used)} of {len(vectors.records())}"
    yield f"settled {len(settled)} of {len(requirements())}"


def missing(records: list[Record], areas: set[str]) -> list[str]:
    """The requirements of these areas that are neither settled nor out of scope."""
    failures = outcomes(records)
    return [
        r.id
        for r in requirements().values()
        if r.area in areas and r.id not in out_of_scope() and failures.get(r.id, ["no test"])
    ]


def main(paths: list[str]) -> int:
    areas: set[str] = set()
    if paths[:1] == ["--require"]:
        areas, paths = set(paths[1].split(",")), paths[2:]
    present = digest()
    records = []
    for path in map(Path, paths):
        if not path.exists():
            continue
        record = read(path)
        if record.sources == present:
            records.append(record)
        else:
            print(f"{path}: made from other sources, left out", file=sys.stderr)
    if not records:
        print("no test run of the present sources is recorded (run `make test`)", file=sys.stderr)
        return NO_RECORD
    print("\n".join(lines(records)))
    lacking = missing(records, areas)
    if lacking:
        print(f"required but not settled: {', '.join(lacking)}", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
