"""The Studio under load, in a real browser; each part writes its own page in benchmarks/results.

    python -m benchmarks.studio live             an hour of curves at 50 steps/s: studio-live.md
    python -m benchmarks.studio pages            time to interactive and size of each view: studio-pages.md
    python -m benchmarks.studio live --minutes 2      a try, printed and not written

Exit code 1 if something does not hold that must.
"""

from __future__ import annotations

import datetime
import signal
import sys

from benchmarks.harness import ROOT, command_line
from benchmarks.report import cpu_name
from benchmarks.serving.part import Part, checked
from benchmarks.studio.live import live

HOUR = 60.0


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("part", choices=("live", "pages"))
    parser.add_argument("--minutes", type=float, default=HOUR, help="of live curves")
    asked = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # so that server and browser end with this program
    if asked.part == "pages":
        from benchmarks.studio.pages import pages
    part = live(asked.minutes) if asked.part == "live" else pages()
    text = page(asked.part, part)
    print(text)
    if asked.part == "pages" or asked.minutes >= HOUR:
        (ROOT / "benchmarks" / "results" / f"studio-{asked.part}.md").write_text(text, encoding="utf-8")
    sys.exit(not all(check.holds for check in part.checks))


def page(name: str, part: Part) -> str:
    written = f"Written by `python -m benchmarks.studio {name}` on {datetime.date.today()}"
    about = f"{written}, {cpu_name()}, chromium without a window."
    return f"# The Studio in a browser\n\n{about}\n{checked([part])}{part.text()}"


if __name__ == "__main__":
    main()
