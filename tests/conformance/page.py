"""Writes docs/reference/requirements.md: each requirement, and the test files that settle it.

python -m tests.conformance.page
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from tests.conformance.marks import scan
from tests.conformance.record import ROOT
from tests.conformance.requirements import out_of_scope, requirements

PAGE = ROOT / "docs" / "reference" / "requirements.md"
HEAD = """# Requirements

The numbered requirements of the specification, and the tests that settle them: a test carries the number in its mark,
`@pytest.mark.requirement("R-083")`. `make conformance` runs them and reports what is settled. Tests mirror the
folders of `src/chainrule`. Written by `python -m tests.conformance.page`.
"""


def page() -> str:
    files: dict[str, set[str]] = defaultdict(set)
    for mark in scan(ROOT):
        for id in mark.requirements:
            files[id].add(mark.declared or mark.test.partition("::")[0])
    parts = [HEAD]
    for title, area in groupby(requirements().values(), key=lambda r: r.title):
        parts.append(f"\n## {title}\n\n| number | requirement | settled by |\n|---|---|---|\n")
        for r in area:
            by = ", ".join(f"`{name}`" for name in sorted(files[r.id]))
            if r.id in out_of_scope():
                by = f"out of scope: {out_of_scope()[r.id]}"
            parts.append(f"| {r.id} | {r.statement.replace('|', chr(92) + '|')} | {by or 'open'} |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
