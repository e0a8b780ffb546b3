"""One run as it is now: curves, samples and findings of its log, in a size that does not grow with its length."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.doctor import Finding
from chainrule.files import is_number
from chainrule.runs import RunFolder
from chainrule.runs.records import environment
from chainrule.runs.records.follow import Curve, Follow
from chainrule.runs.records.plot import smooth

CURVES = ("loss", "validation", "lr", "norm")
SAMPLES = 40  # the last ones
FINDINGS = 60
SPAN = 10  # steps over which the speed is taken, at least


class Live:
    """What the page draws of a log; `update` reads what is new."""

    def __init__(self, folder: Path) -> None:
        self.files = RunFolder(folder)
        self._follow = Follow(self.files.log)
        self._clear()

    def _clear(self) -> None:
        self.curves = {name: Curve() for name in CURVES}
        self.ratios: dict[str, Curve] = {}
        self.samples: deque[dict[str, Any]] = deque(maxlen=SAMPLES)
        self.findings: deque[dict[str, Any]] = deque(maxlen=FINDINGS)
        self.looks: dict[str, dict[str, Any]] = {}
        self.step, self.seconds = 0, 0.0
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
        if "finding" in record:
            self.findings.append({"step": step} | said(Finding.from_dict(record["finding"])))
        watch = record.get("watch", {})
        for finding in map(Finding.from_dict, watch.get("findings", [])):  # each look finds the same again
            self.looks.setdefault(str(finding.code or finding.about), {"step": step} | said(finding))
        for name, each in watch.get("parameters", {}).items():
            if is_number(each.get("update_ratio")):
                self.ratios.setdefault(name, Curve(200)).add(step, float(each["update_ratio"]))

    def _time(self, step: int, seconds: float) -> None:
        """How much was read in a second, since the last point of the curve."""
        done, spent = step - self._before[0], seconds - self._before[1]
        if done >= SPAN and spent > 0:
            self.speed.add(step, self.per_step * done / spent)
            self._before = (step, seconds)

    def snapshot(self) -> dict[str, Any]:
        """Everything, as it is to be drawn."""
        loss = self.curves["loss"]
        curves = {name: [curve.steps, curve.values] for name, curve in self.curves.items()}
        curves["speed"] = [self.speed.steps, self.speed.values]
        curves["smooth"] = [loss.steps, smooth(np.array(loss.values)).tolist()]
        told = {each["code"] for each in self.findings} - {None}
        looks = [each for each in self.looks.values() if each["code"] not in told]
        return {
            "running": self.files.busy,
            "step": self.step,
            "seconds": self.seconds,
            "unit": self.unit,
            "curves": curves,
            "ratios": {name: [curve.steps, curve.values] for name, curve in self.ratios.items()},
            "samples": [*self.samples],
            "findings": sorted([*self.findings, *looks], key=lambda each: each["step"]),
        }


def said(finding: Finding) -> dict[str, Any]:
    """A finding for the page: what was measured, what it means, what to try."""
    return {name: value if value is None else str(value) for name, value in finding.to_dict().items()}
