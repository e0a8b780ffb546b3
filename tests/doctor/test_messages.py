"""A finding is its code: its words are for people, and rewording them changes nothing."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.data import load
from chainrule.doctor import Code, Finding, Monitor
from chainrule.doctor.finding import ABOUT
from chainrule.doctor.messages import MESSAGES, finding
from chainrule.runs.records.review import of_log
from chainrule.train import TrainConfig
from chainrule.train.log import read
from chainrule.train.skips import Diverged
from tests.runs.helpers import new_run

SOURCES = Path(cr.__file__).parent


def test_every_code_has_words_and_a_place_that_finds_it() -> None:
    assert set(MESSAGES) == set(Code)
    used = {
        node.attr
        for path in SOURCES.rglob("*.py")
        if path.parts[-2:] not in (("doctor", "messages.py"), ("doctor", "finding.py"))
        and SOURCES / "scaling" / "fits" not in path.parents  # which has codes of its own
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Code"
    }
    assert used == {code.name for code in Code}


@pytest.mark.parametrize("code", Code)
def test_words_are_complete_sentences(code: Code) -> None:
    level, about, measured, meaning, advice = MESSAGES[code]
    assert about and measured and meaning.endswith(".") and meaning[0].isupper()
    assert bool(advice) == (level != "ok")


def reworded(text: str) -> str:
    """Other words, with the same values in them."""
    names = [name for _, name, *_ in Formatter().parse(text) if name]
    return "qwertz " + " ".join(f"<{{{name}}}>" for name in names)


@pytest.fixture
def other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, (level, *texts) in MESSAGES.items():
        monkeypatch.setitem(MESSAGES, code, type(MESSAGES[code])(level, *map(reworded, texts)))


def outcome(folder: Path) -> list[Any]:
    """What a run found, without the words."""
    records = read(folder / "log.jsonl")
    return [(r["step"], r["finding"]["code"], r["finding"]["level"]) for r in records if "finding" in r]


def trained(folder: Path, name: str, **settings: Any) -> list[Any]:
    run = new_run(folder, name, **settings)
    with suppress(Diverged):  # which has been found before
        run.train()
    return outcome(run.folder)


CASES: list[dict[str, Any]] = [
    {"lr": 1e-9, "max_steps": 30},
    {"lr": 3.0, "max_steps": 150, "eval_every": 50, "warmup": 60, "schedule": "constant"},
    {"lr": 1e-2, "max_steps": 260, "clip": 1e-3, "eval_every": 20},
]


def test_training_finds_the_same_in_other_words(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    before = [trained(tmp_path, f"before{i}", **case) for i, case in enumerate(CASES)]
    request.getfixturevalue("other_words")
    after = [trained(tmp_path, f"after{i}", **case) for i, case in enumerate(CASES)]
    assert before == after
    codes = {code for found in before for _, code, _ in found}
    assert {Code.UPDATES_SMALL, Code.CLIPPING} < codes and len(codes) > 2


def test_the_commands_do_the_same_in_other_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """The forecast is said, a resumed run repeats nothing, a review merges the log with what follows from it."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(load("pydoc").text[:5_000], encoding="utf-8")
    small = ["--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4", "--lr=1e-9"]

    def commands(out: str) -> Iterator[Any]:
        steps = ["--max-steps=20", "--eval-every=5", "--save-every=10"]
        main(["train", "gpt", "text.txt", *small, *steps, f"--out={out}"])
        yield sum(line.startswith("step      0") for line in capsys.readouterr().out.splitlines())
        main(["train", "gpt", f"--resume={out}", "--max-steps=40"])
        capsys.readouterr()
        yield outcome(Path(out))
        main(["doctor", out, "--json"])
        yield [(f["code"], f["level"]) for f in json.loads(capsys.readouterr().out)["findings"]]
        main(["diagnose", out, "--json"])
        yield [(f["code"], f["level"]) for f in json.loads(capsys.readouterr().out)["findings"]]
        main(["runs", "report", out])
        yield Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8").count('class="card')
        with pytest.raises(SystemExit) as stop:
            main(["train", "gpt", "text.txt", *small, "--overfit", "--json"])
        yield stop.value.code, json.loads(capsys.readouterr().out)["code"]

    before = list(commands("one"))
    assert before[0] == 1  # the forecast, though it is ok
    assert before[1].count((5, "updates_small", "note")) == len(before[1]) == 1
    request.getfixturevalue("other_words")
    assert list(commands("two")) == before


# -- logs of versions without codes ------------------------------------------------------------------------------


def test_a_finding_survives_its_log() -> None:
    found = finding(Code.VOCABULARY_OK, size=27)
    assert Finding.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    old = {name: text for name, text in found.to_dict().items() if name != "code"}
    assert Finding.from_dict(old).code is None and Finding.from_dict(old).about == "vocabulary"
    assert Finding.from_dict(old | {"code": "of a later version", "more": 1}).code is None


OLD = {"level": "note", "measured": "m", "meaning": "m", "advice": "a"}


@pytest.mark.parametrize("about", ABOUT)
def test_what_an_old_log_said_is_not_said_again(about: str) -> None:
    monitor = Monitor(TrainConfig(), n_classes=65)
    assert not list(monitor.recall([{"step": 3, "finding": OLD | {"about": about}}]))
    assert monitor.said == ABOUT[about]


def without_codes(path: Path) -> None:
    records = read(path)
    for record in records:
        record.get("finding", {}).pop("code", None)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_a_run_of_a_version_without_codes_is_resumed_and_reviewed(tmp_path: Path) -> None:
    run = new_run(tmp_path, lr=1e-9, max_steps=10, save_every=10)
    run.train()
    assert [code for _, code, _ in outcome(run.folder)] == [Code.UPDATES_SMALL]
    without_codes(run.files.log)
    again = cr.runs.Run.resume(run.folder)
    again.extend(30)
    again.train()
    said = [record["finding"] for record in read(run.files.log) if "finding" in record]
    assert len(said) == 1 and said[0]["about"] == "updates"


def test_a_review_of_an_old_log_does_not_repeat_what_it_says(tmp_path: Path) -> None:
    run = new_run(tmp_path, lr=1e-2, max_steps=260, clip=1e-3, eval_every=20)
    run.train()
    expected = of_log(run.folder, cr.runs.Run.resume(run.folder))
    assert Code.CLIPPING in {found.code for found in expected}
    without_codes(run.files.log)
    again = of_log(run.folder, cr.runs.Run.resume(run.folder))
    assert [found.measured for found in again] == [found.measured for found in expected]
