"""Which changes of the sources would no test notice? Makes small mistakes in a room, one at a time, and runs its tests.

Example: python -m tools.mutate optim --count 60
         python -m tools.mutate ops generate --count 30 --skip 60 --seed 1

A mutant is one source with one change: another comparison or operator, a constant off by one, a condition negated, a
statement left out. Of all mutants of a room a seeded sample is tried. First run the tests that mirror the source
(tests/mirror.toml), for ops with their part of the battery; what survives must then get past all tests of the room.
Tests that start processes of their own see the source as it is. Survivors are printed as diffs: each is the same
program, or a hole in the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from tests.test_mirror import FILES, ROOT, TESTED_IN, TESTS, named_after
from tools.mutants import Mutant, mutants
from tools.planting import BrokenTests, try_mutants

OF_EVERY_ROOM = ("tests/test_defaults.py",)
BATTERY = {
    "ops": "tests/battery/test_ops.py::test_op[{}]",
    "refusals": "tests/battery/test_refusals.py::test_a_wrong_call_is_refused_in_our_words[{}]",
}
WHERE_OPS_ARE = """
import json, chainrule as cr
ops = {name: op.forward.__module__ for name, op in cr.ops.all_ops().items()}
made_of_ops = {name: function.__module__ for name, function in cr.ops.compositions().items()}
print(json.dumps({"ops": ops, "refusals": ops | made_of_ops}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="+", metavar="ROOM", help="folder of src/chainrule: ops, optim, …")
    parser.add_argument("--count", type=int, default=60, help="mutants of each room")
    parser.add_argument("--skip", type=int, default=0, help="continue a sample after so many")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    totals = {room: try_room(room, args.seed, args.skip, args.count) for room in args.rooms}
    for room, (killed, tried) in totals.items():
        print(f"{room}: {killed} of {tried} mutants killed")


def try_room(room: str, seed: int, skip: int, count: int) -> tuple[int, int]:
    """Try the sample of a room; gives the numbers killed and tried."""
    sample = sampled(room, seed)[skip : skip + count]
    if not sample:
        sys.exit(f"mutate: no mutants in src/chainrule/{room} (must be a folder with Python files)")
    by_tests: dict[tuple[str, ...], list[Mutant]] = defaultdict(list)
    for mutant in sample:
        by_tests[mirror_tests(mutant.path)].append(mutant)
    alive: list[Mutant] = []
    for tests, some in sorted(by_tests.items()):
        try:
            alive += survivors(tests, some)
        except BrokenTests as broken:
            print(f"not tried: {broken}", flush=True)
            sample = [mutant for mutant in sample if mutant not in some]
    try:
        alive = survivors((f"tests/{room}", *OF_EVERY_ROOM), alive)
    except BrokenTests as broken:
        print(f"not tried: {broken}", flush=True)
    for mutant in alive:
        print(diff(mutant), flush=True)
    return len(sample) - len(alive), len(sample)


def survivors(tests: tuple[str, ...], some: list[Mutant]) -> list[Mutant]:
    """The mutants that no test of these kills."""
    alive = []
    for mutant, killed in zip(some, try_mutants(tests, some), strict=True) if some else ():
        alive += [] if killed else [mutant]
        where, how = f"{mutant.path.relative_to(ROOT)}:{mutant.line}", "killed" if killed else "survived"
        print(f"{time.strftime('%H:%M:%S')}  {how:8}  {where} {mutant.kind} ({tests[0]})", flush=True)
    return alive


def sampled(room: str, seed: int) -> list[Mutant]:
    """All mutants of a room in a seeded order."""
    of_room = [path for place, path in FILES.items() if place.startswith(f"{room}/")]
    found = [mutant for path in sorted(of_room) for mutant in mutants(path)]
    random.Random(f"{seed} {room}").shuffle(found)
    return found


def mirror_tests(path: Path) -> tuple[str, ...]:
    """The tests of a source as pytest's arguments: those named after it, and the battery of its ops."""
    place = next(place for place, source in FILES.items() if source == path)
    listed = [found for pattern, found in TESTED_IN.items() if fnmatchcase(place, pattern)]
    named = [str(TESTS[test].relative_to(ROOT)) for test in named_after(place)]
    module = "chainrule." + place.replace("/", ".")
    battery = [
        BATTERY[kind].format(name)
        for kind, places in modules_of_ops().items()
        for name, of in places.items()
        if of == module
    ]
    kernel = ROOT / "tests" / "kernels" / "ops" / f"test_{path.stem}.py"
    if place.startswith("ops/"):
        battery += [
            "tests/autograd/test_abstract.py",
            *([str(kernel.relative_to(ROOT))] if kernel.exists() else []),
        ]
    found = [*(f"tests/{test}" for test in listed), *named]
    return (*found, *battery) if found or battery else (f"tests/{Path(place).parent}",)


@cache
def modules_of_ops() -> dict[str, dict[str, str]]:
    """The module of each op, for each part of the battery; asked of another process, since this one changes modules."""
    done = subprocess.run([sys.executable, "-c", WHERE_OPS_ARE], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def diff(mutant: Mutant) -> str:
    """What the mutant changes."""
    name = str(mutant.path.relative_to(ROOT))
    before, after = mutant.path.read_text(encoding="utf-8").splitlines(), mutant.text.splitlines()
    return "\n".join(difflib.unified_diff(before, after, name, mutant.kind, n=1, lineterm=""))


if __name__ == "__main__":
    # A copy of a process has no threads.
    os.environ |= dict.fromkeys(["CHAINRULE_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], "1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        main()
