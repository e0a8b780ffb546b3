"""How many steps there will be, and the learning rate of each.

On a time budget the number of steps is not known at the start. The rate rises and stays, which needs no plan,
until what is left of the time is just what the final decay takes; then the number is fixed. So a run on a
budget is, bit for bit, the run with that many steps.
"""

from __future__ import annotations

from chainrule.optim import wsd
from chainrule.optim.schedules import Schedule
from chainrule.train.config import TrainConfig

FAR = 10**12  # stands for a number of steps that is not known yet
OVERTIME = 1.2  # share of the budget after which a run on a machine that has become slower is cut short


class Plan:
    """The number of steps (`total`, None while unknown) and the schedule (`lr`, a function of the step)."""

    def __init__(self, config: TrainConfig, total: int | None = None) -> None:
        self.config = config
        self.total = config.max_steps if config.budget is None else total
        self.lr = self._schedule()

    def _schedule(self) -> Schedule:
        steps = self.total or FAR
        warmup = min(self.config.warmup, steps - self._decay(steps))
        return wsd(self.config.lr, steps, warmup=warmup, decay=self._decay(steps))

    def _decay(self, steps: int) -> int:
        """How many of `steps` are for the decay."""
        return max(1, round(self.config.decay * steps))

    def revise(self, step: int, seconds: float) -> None:
        """After `step` steps in `seconds`: fix the number of steps when it is time for the decay."""
        if self.config.budget is None or self.total is not None or step < self.config.warmup:
            return
        total = max(step + 1, int(step / seconds * self.config.budget))  # what fits at the pace so far
        if step >= total - self._decay(total):
            while step > total - self._decay(total):  # the pace has dropped; a decay cannot begin in the past
                total += 1
            self.total = total
            self.lr = self._schedule()

    def finished(self, step: int, seconds: float) -> bool:
        late = self.config.budget is not None and seconds > OVERTIME * self.config.budget
        return late or (self.total is not None and step >= self.total)

    def seconds_left(self, step: int, seconds: float) -> float:
        """Estimated from the pace so far."""
        if self.total is None:
            return max(0.0, (self.config.budget or 0.0) - seconds)
        return (self.total - step) * seconds / step
