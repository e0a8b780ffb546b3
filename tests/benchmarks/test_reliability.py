"""A few tries of every campaign, through the command that makes thousands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from benchmarks.harness import ROOT
from benchmarks.reliability.tries import Ended, Tally


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("campaign", ["kills", "damage", "inputs", "commands"])
def test_a_few_tries_find_nothing(campaign: str) -> None:
    words = [sys.executable, "-m", "benchmarks.reliability", "--quick", "--only", campaign]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"COLUMNS": "100"}
    )
    assert done.returncode == 0 and done.stdout.startswith("| what"), (done.stdout, done.stderr)


def test_what_counts_as_a_problem() -> None:
    tally = Tally("x")
    for code, err in ((0, ""), (2, "error: no\n"), (1, "error: it diverged\n")):
        tally.add("fine", Ended(code, "", err, 0))
    assert not tally.problems and (tally.tries, tally.refused) == (3, 1)
    bad = [
        (-9, ""),
        (3, "Traceback (most recent call last):\nKeyError: 3"),
        (2, ""),
        (2, "error: a\nerror: b\n"),
        (7, ""),
    ]
    for code, err in bad:
        tally.add("bad", Ended(code, "", err, 0))
    assert len(tally.problems) == len(bad)
