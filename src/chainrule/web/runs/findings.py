"""What the doctor said while a run trained, for the page: in a size that does not grow with the log."""

from __future__ import annotations

from collections import deque
from typing import Any

from chainrule.doctor import Finding
from chainrule.doctor.finding import Code

MOST = 60  # the last ones
# The setting to change first, where it is nearly always the same one.
FIRST = {
    **dict.fromkeys(
        (Code.LOSS_SPIKE, Code.CURVE_DIVERGES, Code.CURVE_NOT_FINITE, Code.UPDATES_LARGE, Code.GRADIENTS_EXPLODE,
         Code.NOT_FINITE_FORWARD, Code.NOT_FINITE_BACKWARD, Code.NOT_FINITE_GRADIENT, Code.NOT_FINITE_UPDATE),
        "lr",
    ),
    Code.FORECAST_MEMORY: "batch_size",
}  # fmt: skip


class Findings:
    """The findings of the records of a log."""

    def __init__(self) -> None:
        self._told: deque[dict[str, Any]] = deque(maxlen=MOST)
        self._looks: dict[str, dict[str, Any]] = {}

    def add(self, record: dict[str, Any]) -> None:
        """The next record; most hold no finding. Each look inside finds the same again: it counts once."""
        step = {"step": record["step"]}
        if "finding" in record:
            self._told.append(step | said(Finding.from_dict(record["finding"])))
        for finding in map(Finding.from_dict, record.get("watch", {}).get("findings", [])):
            self._looks.setdefault(str(finding.code or finding.about), step | said(finding))

    def listed(self) -> list[dict[str, Any]]:
        """In the order of their steps; what was told need not be seen too."""
        told = {each["code"] for each in self._told} - {None}
        looks = [each for each in self._looks.values() if each["code"] not in told]
        return sorted([*self._told, *looks], key=lambda each: each["step"])

    @property
    def problems(self) -> int:
        """How many of them are more than a remark."""
        return sum(each["level"] == "problem" for each in self.listed())


def said(finding: Finding) -> dict[str, Any]:
    """A finding for the page: what was measured, what it means, what to try, and the setting to change first."""
    texts = {name: value if value is None else str(value) for name, value in finding.to_dict().items()}
    return texts | {"setting": FIRST.get(finding.code) if finding.code else None}
