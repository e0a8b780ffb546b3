"""A run as it is followed: the numbers of its log, in a bounded size, whatever happens to the file."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import chainrule as cr
from chainrule.doctor.finding import Code
from chainrule.runs.records.plot import smooth
from chainrule.web.routes.runs import events
from chainrule.web.runs.live import SAMPLES, Live
from chainrule.web.runs.overview import Runs
from chainrule.web.runs.processes import Trainings


def test_the_snapshot_has_the_numbers_of_the_log(runs: Path) -> None:
    live = Live(runs / "one")
    assert live.update() and not live.update()
    shown, history = live.snapshot(), cr.runs.History.of(runs / "one")
    for name in ("loss", "validation", "lr", "norm"):
        assert [*zip(*shown["curves"][name], strict=True)] == history.series(name)
    losses = shown["curves"]["loss"][1]
    assert shown["curves"]["smooth"][1] == smooth(np.array(losses)).tolist()
    assert shown["step"] == 12 and shown["running"] is False
    seconds = {r["step"]: r["seconds"] for r in history.records if "loss" in r}
    at, speed = shown["curves"]["speed"]
    assert shown["unit"] == "tokens" and at == [10] and speed == [4 * 16 * 10 / seconds[10]]
    samples = [(r["step"], r["sample"]) for r in history.records if "sample" in r]
    assert [(each["step"], each["text"]) for each in shown["samples"]] == samples and samples
    assert shown["ratios"]["wte.weight"][0] == [r["step"] for r in history.records if "watch" in r]


def test_what_a_look_inside_finds_is_told_once(tmp_path: Path) -> None:
    finding = cr.doctor.Finding(None, "problem", "updates", "one step moves a matrix by 0.7", "too far")
    run = tmp_path / "run"
    run.mkdir()
    looks = [{"step": step, "watch": {"findings": [finding.to_dict()]}} for step in (1, 2)]
    (run / "log.jsonl").write_text("".join(json.dumps(look) + "\n" for look in looks))
    live = Live(run)
    live.update()
    (shown,) = live.snapshot()["findings"]
    assert shown["step"] == 1 and shown["measured"] == finding.measured


def shown_of(run: Path, *records: dict) -> list[tuple[int, str]]:
    """The findings that the page shows of a log, with their steps."""
    run.mkdir()
    (run / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    live = Live(run)
    live.update()
    return [(each["step"], each["code"]) for each in live.snapshot()["findings"]]


def test_a_graver_finding_about_the_same_is_told_too(tmp_path: Path) -> None:
    zero, nan = (
        cr.doctor.Finding(code, "problem", "gradients", "measured", "means").to_dict()
        for code in (Code.GRADIENT_ZERO, Code.GRADIENT_NOT_FINITE)
    )
    looks = [{"step": 10, "watch": {"findings": [zero]}}, {"step": 500, "watch": {"findings": [zero, nan]}}]
    expected = [(10, str(Code.GRADIENT_ZERO)), (500, str(Code.GRADIENT_NOT_FINITE))]
    assert shown_of(tmp_path / "looks", *looks) == expected
    told = [{"step": 5, "finding": zero}, *looks]  # what the training itself said is not said again
    assert shown_of(tmp_path / "told", *told) == [(5, str(Code.GRADIENT_ZERO)), expected[1]]


def test_an_hour_at_fifty_steps_a_second_stays_small(tmp_path: Path) -> None:
    run = tmp_path / "long"
    run.mkdir()
    live = Live(run)
    with (run / "log.jsonl").open("w", encoding="utf-8") as log:
        for step in range(1, 20_001):
            log.write(json.dumps({"step": step, "loss": 1.0 / step, "lr": 0.1, "norm": 1.0}) + "\n")
            if step % 100 == 0:
                log.write(json.dumps({"step": step, "sample": "x" * 50}) + "\n")
            if step % 5000 == 0:
                log.flush()
                assert live.update()
                shown = live.snapshot()
                assert len(shown["curves"]["loss"][0]) <= 1000 and len(shown["samples"]) <= SAMPLES
                assert len(json.dumps(shown)) < 200_000
    assert shown["curves"]["loss"][0][0] == 1 and shown["step"] == 20_000


def test_a_stream_of_events_shows_a_run_that_is_there(runs: Path) -> None:
    class Gone:
        """A client that leaves after the first look."""

        looks = 0

        async def is_disconnected(self) -> bool:
            self.looks += 1
            return self.looks > 1

    async def first() -> list[str]:
        return [e async for e in events(Gone(), runs / "one", "one", Trainings(runs), Runs(runs))]

    with ThreadPoolExecutor(1) as thread:  # a browser of other tests has an event loop in this one
        (event,) = thread.submit(lambda: asyncio.run(first())).result()
    assert event.startswith("data: ") and event.endswith("\n\n")
    shown = json.loads(event[6:])
    assert shown["step"] == shown["total"] == 12 and shown["left"] == 0
    assert shown["there"] and shown["process"] is None


def test_what_is_ahead_follows_the_pace_of_the_last_steps(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    slow = [{"step": step, "loss": 1.0, "seconds": 10.0 * step} for step in range(1, 21)]
    quick = [{"step": 20 + step, "loss": 1.0, "seconds": 200 + 0.5 * step} for step in range(1, 61)]
    (run / "log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in slow + quick))
    live = Live(run)
    live.update()
    assert live.ahead() == (None, None)  # of a run whose settings are not known
    live.settings = {"max_steps": 100, "budget": None}
    assert live.ahead() == (100, 10.0)
    live.settings = {"budget": 260.0}
    assert live.ahead() == (140, 30.0)
