"""`make mutants`: each mutant is the source with one mistake, and a test that sees it fails."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tools.mutants import mutants
from tools.mutate import ROOT, mirror_tests, sampled

SOURCE = '''"""A docstring with 1 number."""

def lower(x: int = 3) -> "tuple[1]":
    if x < 2 and x:
        raise ValueError(f"{x} is below {2}")
    names["é"] = x * 2; x += 1
    names.clear()
    return x
'''


def changed(path: Path) -> set[tuple[int, str]]:
    """The lines of the mutants that differ from those of the file."""
    before = path.read_text(encoding="utf-8").splitlines()
    found = set()
    for mutant in mutants(path):
        after = mutant.text.splitlines()
        compile(mutant.text, "mutant", "exec")
        found |= {
            (mutant.line, new.strip())
            for old, new in zip(before, after + [""] * 9, strict=False)
            if old != new and new not in before
        }
    return found


def test_mutants_of_each_kind(tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text(SOURCE, encoding="utf-8")
    assert changed(path) == {
        (3, 'def lower(x: int = 4) -> "tuple[1]":'),
        (3, 'def lower(x: int = (2)) -> "tuple[1]":'),
        (4, "if (not (x < 2 and x)):"),
        (4, "if (x < 2 or x):"),
        (4, "if (x <= 2) and x:"),
        (4, "if x < 3 and x:"),
        (4, "if x < (1) and x:"),
        (5, "pass"),
        (6, "pass; x += 1"),
        (6, 'names["é"] = (x / 2); x += 1'),
        (6, 'names["é"] = x * 3; x += 1'),
        (6, 'names["é"] = x * (1); x += 1'),
        (6, 'names["é"] = x * 2; x -= 1'),
        (6, 'names["é"] = x * 2; pass'),
        (6, 'names["é"] = x * 2; x += 2'),
        (6, 'names["é"] = x * 2; x += (0)'),
        (7, "pass"),
    }


PLANTED = """
from tools.mutants import mutants
from tools.mutate import ROOT, try_mutants
path = ROOT / "src" / "chainrule" / "optim" / "schedules.py"
wanted = {"math.sqrt((to_params * params))", "t = max(step, 2)", "1.0) -> Schedule:", "scale: float = 2.0"}
lines = {}
for mutant in mutants(path):
    line = mutant.text.splitlines()[mutant.line - 1]
    lines |= {part: mutant for part in wanted if part in line}
tests = ("tests/optim/test_schedules.py::test_transfer_vector", "tests/optim/test_schedules.py::test_warm_up_vector")
print(dict(zip(lines, try_mutants(tests, list(lines.values())), strict=True)))
"""


def test_the_tests_of_a_file_are_run_on_the_mutant() -> None:
    done = subprocess.run([sys.executable, "-c", PLANTED], cwd=ROOT, capture_output=True, text=True)
    killed = ast.literal_eval(done.stdout or "{}")
    assert killed == {
        "math.sqrt((to_params * params))": True,
        "t = max(step, 2)": True,
        "scale: float = 2.0": True,  # planted where the file is imported
        "1.0) -> Schedule:": False,  # of other schedules
    }, done.stderr


def test_ops_are_tried_by_their_battery_and_samples_are_repeated() -> None:
    tests = mirror_tests(ROOT / "src" / "chainrule" / "ops" / "neural" / "softmax.py")
    assert {"tests/ops/neural/test_softmax.py", "tests/battery/test_ops.py::test_op[softmax]"} <= set(tests)
    first = sampled("optim", 0)
    assert mirror_tests(first[0].path)[0].startswith("tests/optim")
    assert first == sampled("optim", 0) != sampled("optim", 1)
    assert {mutant.path.parent.name for mutant in first} == {"optim"}
