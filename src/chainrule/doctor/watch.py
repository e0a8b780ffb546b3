"""An observer for training: every so many steps it measures the model, for `log.jsonl`."""

from __future__ import annotations

from typing import Any

from chainrule.doctor.report import Report, diagnose
from chainrule.errors import ConfigError
from chainrule.files import plain
from chainrule.optim import Optimizer


class Watch:
    """Call `observe` after every step; when one is due it returns a record for `log.jsonl`, else None.

    A look costs about two steps and changes nothing: the run continues to the same bits.

    >>> from chainrule.doctor.watch import Watch
    >>> [step for step in range(1, 500) if Watch(every=200).due(step)]
    [1, 200, 400]
    """

    def __init__(self, every: int = 100) -> None:
        if every < 1:
            raise ConfigError(f"watch: every is {every} (must be at least 1)")
        self.every = every

    def due(self, step: int) -> bool:
        return step == 1 or step % self.every == 0

    def observe(
        self,
        step: int,
        model: Any,
        batch: tuple[Any, ...],
        optimizer: Optimizer | None = None,
        lr: float | None = None,
    ) -> dict[str, Any] | None:
        """What the model looks like after `step` steps: {"step", "watch": {...}} of plain numbers and words."""
        if not self.due(step):
            return None
        return {"step": step, "watch": record(diagnose(model, batch, optimizer=optimizer, lr=lr, step=step))}


def record(report: Report) -> dict[str, Any]:
    """The numbers of a report by layer and parameter, without the histograms."""
    found: dict[str, Any] = {"loss": report.loss, "entropy": report.entropy, "layers": {}, "parameters": {}}
    for layer in report.layers:
        spread = {"std": layer.value.std, "grad_std": layer.grad.std if layer.grad else None}
        found["layers"][layer.name] = spread | {"flat": layer.flat, "dead": len(layer.dead)}
    for p in report.parameters:
        lengths = {"weight": p.weight_norm, "grad": p.grad_norm, "update_ratio": p.update_ratio}
        found["parameters"][p.name] = lengths
    found["problems"] = [f"{finding.about}: {finding.measured}" for finding in report.problems]
    found["findings"] = [finding.to_dict() for finding in report.problems]
    return dict(plain(found))
