"""Following a log: every record once, whole lines only, from the start if the file was cut."""

from __future__ import annotations

import json
from pathlib import Path

from chainrule.runs import History
from chainrule.runs.records.compare import facts
from chainrule.runs.records.follow import Curve, Digest, Follow


def line(step: int) -> str:
    return f'{{"step": {step}, "loss": {step}.5}}\n'


def steps(found: tuple[bool, list[dict]]) -> tuple[bool, list[int]]:
    return found[0], [record["step"] for record in found[1]]


def test_records_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    follow = Follow(path)
    assert steps(follow.new()) == (False, [])
    path.write_text(line(1) + line(2) + line(3)[:9])
    assert steps(follow.new()) == (True, [1, 2])
    assert steps(follow.new()) == (False, [])
    with path.open("a") as file:
        file.write(line(3)[9:] + "damaged\n" + line(4))
    assert steps(follow.new()) == (False, [3, 4])


def test_a_log_that_was_cut_or_replaced_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    follow = Follow(path)
    path.write_text(line(1) + line(2))
    assert steps(follow.new()) == (True, [1, 2])
    path.write_text(line(1))
    assert steps(follow.new()) == (True, [1])
    other = tmp_path / "other"
    other.write_text(line(1) + line(5))
    other.replace(path)
    assert steps(follow.new()) == (True, [1, 5])
    path.unlink()
    assert steps(follow.new()) == (True, [])
    assert steps(follow.new()) == (False, [])


def test_a_curve_keeps_its_first_point_and_its_order() -> None:
    curve = Curve(most=10)
    for step in range(1, 1000):
        curve.add(step, -float(step))
        assert len(curve.steps) <= 10
    assert curve.steps == sorted(curve.steps) and curve.steps[0] == 1
    assert curve.values == [-float(step) for step in curve.steps]


def test_a_digest_says_of_a_growing_log_what_all_its_records_say(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    path = folder / "log.jsonl"
    digest = Digest(path)
    assert digest.records() == []
    lines = [
        {"step": 1, "loss": 4.0, "lr": 0.1, "norm": 1.0, "seconds": 0.5, "parameters": 7},
        {"step": 2, "loss": 3.0, "lr": 0.1, "norm": 1.0, "seconds": 1.0, "parameters": 7},
        {"step": 2, "validation": 3.5, "seconds": 1.2},
        {"step": 3, "loss": 2.5, "lr": 0.1},
        {"step": 3, "validation": 3.75, "seconds": 1.75},
        {"step": 4, "sample": "the"},
        {"step": 4, "validation": None, "seconds": 1.5},
        {"step": 5, "validation": 3.6, "accuracy": 0.9, "f1": 0.5},
        {"step": 6, "validation": 3.4, "accuracy": 0.8, "f1": 0.7, "seconds": 2.5},
        {"step": 7, "validation": 3.9, "accuracy": 0.9, "f1": 0.6},
    ]  # fmt: skip
    for record in lines:
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        few, all = History.of(folder, digest.records()), History.of(folder)
        assert facts(few) == facts(all) and few.scores == all.scores
    assert len(digest.records()) <= 5
    path.write_text(line(1))
    assert [record["step"] for record in digest.records()] == [1, 1]
