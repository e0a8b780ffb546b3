"""What the doctor said while a run trained, for the page: in a size that does not grow with the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
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
        self._codes: set[str | None] = set()  # of all that was told
        self._problems = 0  # that were told, also those that are no longer among the last

    def add(self, record: dict[str, Any]) -> None:
        """The next record; most hold no finding. Each look inside finds the same again: it counts once."""
        step = {"step": record["step"]}
        for each in _entries([record.get("finding")]):
            self._told.append(step | each)
            self._codes.add(each["code"])
            self._problems += each["level"] == "problem"
        for each in _entries(record.get("watch", {}).get("findings")):
            self._looks.setdefault(each["code"] or each["about"], step | each)

    def listed(self) -> list[dict[str, Any]]:
        """In the order of their steps; what was told need not be seen too."""
        return sorted([*self._told, *self._seen()], key=lambda each: each["step"])

    @property
    def problems(self) -> int:
        """How many of them are more than a remark."""
        return self._problems + sum(each["level"] == "problem" for each in self._seen())

    def _seen(self) -> list[dict[str, Any]]:
        told = self._codes - {None}
        return [each for each in self._looks.values() if each["code"] not in told]


def _entries(found: Any) -> Iterator[dict[str, Any]]:
    """The findings of a part of a record; a log that was damaged may hold anything there."""
    for each in found if isinstance(found, list) else ():
        try:
            yield said(Finding.from_dict(each))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue


def said(finding: Finding) -> dict[str, Any]:
    """A finding for the page: what was measured, what it means, what to try, and the setting to change first."""
    texts = {name: value if value is None else str(value) for name, value in finding.to_dict().items()}
    return texts | {"setting": FIRST.get(finding.code) if finding.code else None}
