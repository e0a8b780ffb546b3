"""A monitor beside the training: spikes, clipping, overfitting, layers that do not learn.

It reads the losses, norms and evaluations of the loop, and looks at weights only when the model is evaluated. So it
costs next to nothing, changes nothing, and follows from the log: `recall` brings it up to date after a resume, and
`chainrule doctor RUN` has it read a log from the start. A finding is said once while it lasts.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from chainrule.autograd import Parameters
from chainrule.doctor import limits
from chainrule.doctor.finding import Code, Finding, Level
from chainrule.doctor.messages import finding
from chainrule.doctor.rules import of_curve, of_parameters
from chainrule.doctor.settings import Settings
from chainrule.inspect.gradients import parameters
from chainrule.inspect.losses import curve
from chainrule.optim import Optimizer

LARGE = 1e4  # nats: a larger loss counts as this, or its rounding would stay behind in the sums
FROM_WEIGHTS = {Code.GRADIENT_NOT_FINITE, Code.GRADIENT_ZERO, Code.UPDATES_SMALL}
"""Large updates are usual in the first steps; where they do harm, the loss says so."""


class Alarm:
    """Rings once when something begins, and can ring again after it has ended."""

    def __init__(self) -> None:
        self.on = False

    def __call__(self, begins: bool, ends: bool) -> bool:
        rings = begins and not self.on
        self.on = (self.on or begins) and not ends
        return rings


class Window:
    """Mean and standard deviation of the last `size` numbers, kept up to date: a step must not wait for them."""

    def __init__(self, size: int) -> None:
        self.numbers: deque[float] = deque()
        self.size = size
        self.sum = self.squares = 0.0

    def add(self, number: float) -> None:
        number = min(number, LARGE)
        self.numbers.append(number)
        self.sum += number
        self.squares += number * number
        if len(self.numbers) > self.size:
            old = self.numbers.popleft()
            self.sum -= old
            self.squares -= old * old

    @property
    def mean(self) -> float:
        return self.sum / len(self.numbers)

    @property
    def spread(self) -> float:
        return math.sqrt(max(0.0, self.squares / len(self.numbers) - self.mean**2))


class Monitor:
    """Findings about one training, step by step. `n_classes` is the number of tokens or labels to choose from."""

    def __init__(self, config: Settings, n_classes: int | None = None) -> None:
        self.config = config
        self.n_classes = n_classes
        self.losses: list[float] = []
        self.recent, self.recent_roots = Window(limits.SPIKE_WINDOW), Window(limits.SPIKE_WINDOW)
        self.clipped = 0  # steps in a row
        self.since: list[float] = []  # losses since the last evaluation
        self.evaluations: list[tuple[int, float, float]] = []
        """Step, validation loss, mean training loss before it."""
        self.spike, self.always_clipped, self.overfits = Alarm(), Alarm(), Alarm()
        self.said: set[Code] = set()

    def step(self, loss: float, norm: float) -> list[Finding]:
        """After a step, with its loss and the norm of its gradient before it was clipped."""
        if not math.isfinite(loss + norm):
            return []  # `explain` says why, where it happens
        found = [*self._spike(loss), *self._clipped(norm)]
        self.losses.append(loss)
        self.recent.add(loss)
        self.recent_roots.add(_root(loss))
        self.since.append(loss)
        return found

    def evaluation(self, step: int, validation: float) -> list[Finding]:
        """After the model was evaluated."""
        if not math.isfinite(validation):
            return []
        trained = float(np.mean(self.since)) if self.since else math.nan
        self.since = []
        self.evaluations.append((step, validation, trained))
        found = list(self._overfits())
        if self.n_classes and len(self.losses) >= limits.SPIKE_WINDOW:
            found += self._once([of_curve(curve(self.losses, self.n_classes))])
        return found

    @property
    def best(self) -> tuple[int, float] | None:
        """The step with the lowest validation loss so far, and that loss; the earliest of several."""
        return min(((step, loss) for step, loss, _ in self.evaluations), key=lambda e: e[1], default=None)

    def weights(self, params: Parameters, optimizer: Optimizer) -> list[Finding]:
        """Layers without a gradient and updates too small to matter, at the full rate, by the gradient of this step.

        Before the first update a part that starts at 0, as the B of LoRA, lets no gradient through to what is before
        it: that is looked at from the second on.
        """
        seen = parameters(params, optimizer, self.config.lr)
        found = of_parameters([p for p in seen if optimizer.steps > 1 or p.grad_norm != 0])
        return self._once(f for f in found if f.code in FROM_WEIGHTS)

    def recall(self, records: Iterable[dict[str, Any]]) -> Iterator[tuple[int, Finding]]:
        """Read a log: find again what follows from it, with the steps, and remember what else was said."""
        for record in records:
            step = record["step"]
            if "loss" in record:
                loss, norm = (math.nan if record.get(k) is None else record[k] for k in ("loss", "norm"))
                found = self.step(loss, norm)
                yield from ((step, each) for each in found)
            elif record.get("validation") is not None:
                yield from ((step, each) for each in self.evaluation(step, record["validation"]))
            elif "finding" in record:
                self.said |= Finding.from_dict(record["finding"]).codes

    def _once(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that are not ok and have not been said."""
        new = [f for f in findings if f.level != "ok" and f.code not in self.said]
        for each in new:
            self.said |= each.codes
        return new

    def _spike(self, loss: float) -> Iterator[Finding]:
        steps = len(self.recent.numbers)
        if steps < limits.SPIKE_WINDOW // 3:
            return
        mean = self.recent.mean
        z = (loss - mean) / max(self.recent.spread, limits.SPIKE_SPREAD)
        # A loss that counts a few wrong labels varies by its own root: the root of it has the same spread at any mean.
        roots, least = self.recent_roots, z
        if mean > 0:  # that of a reward may be negative, and has no root
            least = min(z, (_root(loss) - roots.mean) / max(roots.spread, limits.SPIKE_ROOT_SPREAD))
        if self.spike(least > limits.SPIKE, least < 1):
            said = {"lr": self.config.lr, "warmup": self.config.warmup, "clip": self.config.clip}
            yield finding(Code.LOSS_SPIKE, loss=loss, z=z, mean=mean, steps=steps, **said)

    def _clipped(self, norm: float) -> Iterator[Finding]:
        self.clipped = self.clipped + 1 if norm > limits.CLIPPED_BY * self.config.clip else 0
        if self.always_clipped(self.clipped >= limits.CLIPPED, self.clipped == 0):
            said = {"factor": limits.CLIPPED_BY, "clip": self.config.clip, "norm": norm}
            yield finding(Code.CLIPPING, steps=self.clipped, **said)

    def _overfits(self) -> Iterator[Finding]:
        best = min(range(len(self.evaluations)), key=lambda i: self.evaluations[i][1])
        (at, lowest, then), (_, last, now) = self.evaluations[best], self.evaluations[-1]
        waited = len(self.evaluations) - 1 - best
        rises = waited >= limits.RISING and last > lowest * (1 + limits.RISEN) and now < then
        if self.overfits(rises, waited == 0):
            said = {"last": last, "lowest": lowest, "step": at, "then": then, "now": now}
            kept = self.config.keep == "best"  # the run has followed the advice already
            since = " after the best step, whose checkpoint is the one used" if kept else ""
            level: Level = "note" if kept else "problem"
            yield finding(Code.OVERFITTING, level, **said, since=since, patience=limits.RISING)


def _root(loss: float) -> float:
    """The root of a loss, 0 of a negative one."""
    return math.sqrt(max(loss, 0.0))
