"""How many steps there will be, and the learning rate of each.

On a time budget the number of steps is not known at the start. The rate rises and stays, which needs no plan,
until the time left is just what the final decay takes; then the number is fixed. So a run on a
budget is, bit for bit, the run with that many steps; but if the time is too short for its warm-up, the rate falls
from where it has come.
"""

from __future__ import annotations

from chainrule.errors import ConfigError
from chainrule.optim import schedules
from chainrule.optim.schedules import Schedule, after_warmup
from chainrule.train.config import SCHEDULES, TrainConfig

FAR = 10**12  # stands for a number of steps that is not known yet
OVERTIME = 1.2  # fraction of the budget after which a run on a machine that has become slower is cut short


class Plan:
    """The number of steps (`total`, None while unknown) and the schedule (`lr`, a function of the step)."""

    def __init__(self, config: TrainConfig, total: int | None = None) -> None:
        self.config = config
        self.total = config.max_steps if config.budget is None else total
        self.lr = self._schedule()

    def _schedule(self) -> Schedule:
        steps, lr, final = self.total or FAR, self.config.lr, self.config.min_lr
        fall = self._decay(steps) if self.config.schedule == "wsd" else 1
        warmup = min(self.config.warmup, steps - fall)
        if self.config.budget is not None:  # what was done with a warm-up that is cut short cannot be changed
            lr *= (warmup + 1) / (self.config.warmup + 1)
            final = min(final, lr)
        match self.config.schedule:
            case "wsd":
                return schedules.wsd(lr, steps, warmup=warmup, decay=fall, final=final)
            case "cosine":
                return schedules.cosine(lr, steps, warmup=warmup, final=final)
            case "linear":
                return schedules.linear(lr, steps, warmup=warmup, final=final)
            case "step":
                return after_warmup(schedules.step_decay(lr, steps), warmup, lr)
            case "inverse_sqrt":  # with its peak at lr
                return schedules.inverse_sqrt(1, max(1, warmup), scale=lr * max(1, warmup) ** 0.5)
            case "constant":
                return after_warmup(schedules.constant(lr), warmup, lr)
        raise ConfigError.of(
            "train", {"schedule": self.config.schedule}, f"must be one of {', '.join(SCHEDULES)}"
        )

    def _decay(self, steps: int) -> int:
        """How many of `steps` are for the decay."""
        return max(1, round(self.config.decay * steps))

    def revise(self, step: int, seconds: float) -> None:
        """After `step` steps in `seconds`: fix the number of steps when it is time for the decay."""
        if self.config.budget is None or self.total is not None:
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
