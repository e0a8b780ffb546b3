"""One run as it is now: curves, samples and findings of its log, in a size that does not grow with its length."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.files import is_number
from chainrule.runs import RunFolder
from chainrule.runs.records import environment
from chainrule.runs.records.follow import Curve, Follow
from chainrule.runs.records.plot import smooth
from chainrule.web.runs.findings import Findings

CURVES = ("loss", "validation", "lr", "norm")
SAMPLES = 40  # the last ones
SPAN = 10  # steps over which the speed is taken, at least
RECENT = 50  # steps whose pace says how long the rest takes


class Live:
    """What the page draws of a log; `update` reads what is new."""

    def __init__(self, folder: Path) -> None:
        self.files = RunFolder(folder)
        self.settings: Mapping[str, Any] = {}  # of the run, as soon as somebody knows them
        self._follow = Follow(self.files.log)
        self._clear()

    def _clear(self) -> None:
        self.curves = {name: Curve() for name in CURVES}
        self.ratios: dict[str, Curve] = {}
        self.samples: deque[dict[str, Any]] = deque(maxlen=SAMPLES)
        self.findings = Findings()
        self.step, self.seconds = 0, 0.0
        self._recent: deque[tuple[int, float]] = deque(maxlen=RECENT)
        self.speed, self._before = Curve(), (0, 0.0)
        self.unit, self.per_step = "steps", 1.0

    def update(self) -> bool:
        """Read what was written since the last call; whether there was something."""
        anew, records = self._follow.new()
        if anew:
            self._clear()
        if records and self.unit == "steps":
            known = environment.read(self.files.path).get("per_step") or {"steps": 1.0}
            self.unit, self.per_step = next((str(unit), float(n)) for unit, n in known.items())
        for record in records:
            self._add(record)
        return anew or bool(records)

    def _add(self, record: dict[str, Any]) -> None:
        step = record["step"]
        self.step = max(self.step, step)
        if is_number(record.get("seconds")):
            self.seconds = float(record["seconds"])
            self._time(step, self.seconds)
        for name in CURVES:
            if is_number(record.get(name)):
                self.curves[name].add(step, float(record[name]))
        if "sample" in record:
            self.samples.append({"step": step, "text": record["sample"]})
        self.findings.add(record)
        for name, each in record.get("watch", {}).get("parameters", {}).items():
            if is_number(each.get("update_ratio")):
                self.ratios.setdefault(name, Curve(200)).add(step, float(each["update_ratio"]))

    def _time(self, step: int, seconds: float) -> None:
        """How much was read in a second, since the last point of the curve."""
        self._recent.append((step, seconds))
        done, spent = step - self._before[0], seconds - self._before[1]
        if done >= SPAN and spent > 0:
            self.speed.add(step, self.per_step * done / spent)
            self._before = (step, seconds)

    def ahead(self) -> tuple[int | None, float | None]:
        """How many steps there will be, and the seconds left at the pace of the last ones; None if not known.

        A budget decides the steps as it goes: until then their number is what fits at this pace.
        """
        (first, since), (last, until) = (
            (self._recent[0], self._recent[-1]) if self._recent else ((0, 0.0),) * 2
        )
        pace = (until - since) / (last - first) if last > first else None  # seconds per step
        total, budget = self.settings.get("max_steps"), self.settings.get("budget")
        if budget is not None and is_number(budget):
            left = max(0.0, float(budget) - self.seconds)
            return (self.step + round(left / pace) if pace else None), left
        if type(total) is not int:
            return None, None
        return total, None if pace is None else max(0, total - self.step) * pace

    def snapshot(self) -> dict[str, Any]:
        """Everything, as it is to be drawn."""
        loss = self.curves["loss"]
        curves = {name: [curve.steps, curve.values] for name, curve in self.curves.items()}
        curves["speed"] = [self.speed.steps, self.speed.values]
        curves["smooth"] = [loss.steps, smooth(np.array(loss.values)).tolist()]
        total, left = self.ahead()
        return {
            "running": self.files.busy,
            "step": self.step,
            "total": total,
            "seconds": self.seconds,
            "left": left,
            "unit": self.unit,
            "curves": curves,
            "ratios": {name: [curve.steps, curve.values] for name, curve in self.ratios.items()},
            "samples": [*self.samples],
            "findings": self.findings.listed(),
        }
