"""A doctor beside the training: what it sees goes wrong, what that means, and what to try.

It reads what the loop has anyway, losses, norms and evaluations, and looks at weights only when the model is judged. So
it costs next to nothing, changes nothing, and what it says follows from the log: `recall` brings it up to date after
a resume, and `chainrule doctor RUN` has it read a log from the start. Nothing is said twice while it lasts.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from chainrule.autograd import Parameters
from chainrule.doctor import limits
from chainrule.doctor.finding import Finding
from chainrule.doctor.rules import of_parameters
from chainrule.inspect.gradients import parameters
from chainrule.inspect.losses import curve
from chainrule.optim import Optimizer

LARGE = 1e4  # nats: what is more counts as this, or it would leave its rounding behind in the sums


class Settings(Protocol):
    """What the doctor reads of the settings of a training."""

    @property
    def lr(self) -> float: ...

    @property
    def warmup(self) -> int: ...

    @property
    def clip(self) -> float: ...


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


class Doctor:
    """Findings about one training, as it goes. `choices` is among how many tokens or labels the model decides."""

    def __init__(self, config: Settings, choices: int | None = None) -> None:
        self.config = config
        self.choices = choices
        self.losses: list[float] = []
        self.recent = Window(limits.SPIKE_WINDOW)
        self.clipped = 0  # steps in a row
        self.since: list[float] = []  # losses since the last evaluation
        self.evaluations: list[tuple[int, float, float]] = []
        """Step, validation loss, mean training loss before it."""
        self.spike, self.always_clipped, self.overfits = Alarm(), Alarm(), Alarm()
        self.said: set[tuple[str, str]] = set()

    def step(self, loss: float, norm: float) -> list[Finding]:
        """After a step, with its loss and the norm of its gradient before it was clipped."""
        if not math.isfinite(loss + norm):
            return []  # such a step is explained where it happens
        found = [*self._spike(loss), *self._clipped(norm)]
        self.losses.append(loss)
        self.recent.add(loss)
        self.since.append(loss)
        return found

    def evaluation(self, step: int, validation: float) -> list[Finding]:
        """After the model was judged."""
        if not math.isfinite(validation):
            return []
        trained = float(np.mean(self.since)) if self.since else math.nan
        self.since = []
        self.evaluations.append((step, validation, trained))
        if self.choices and len(self.losses) >= limits.SPIKE_WINDOW:
            return [*self._overfits(), *self._once([curve(self.losses, self.choices).finding])]
        return list(self._overfits())

    @property
    def best(self) -> tuple[int, float] | None:
        """The step with the lowest validation loss so far, and that loss; the earliest of several."""
        return min(((step, loss) for step, loss, _ in self.evaluations), key=lambda e: e[1], default=None)

    def weights(self, params: Parameters, optimiser: Optimizer) -> list[Finding]:
        """Layers without a gradient and updates too small to matter, at the full rate, by the gradient of this step."""
        about = of_parameters(parameters(params, optimiser, self.config.lr))
        # Fast ones are usual in the first steps; where they do harm, the loss says so.
        return self._once(f for f in about if f.about == "gradients" or "Below" in f.meaning)

    def recall(self, records: Iterable[dict[str, Any]]) -> Iterator[tuple[int, Finding]]:
        """Read a log; gives what follows from it again, with the steps, and remembers what else was said."""
        for record in records:
            step = record["step"]
            if "loss" in record:
                found = self.step(*(math.nan if record[k] is None else record[k] for k in ("loss", "norm")))
                yield from ((step, finding) for finding in found)
            elif record.get("validation") is not None:
                yield from ((step, finding) for finding in self.evaluation(step, record["validation"]))
            elif "finding" in record:
                self.said.add(_key(Finding(**record["finding"])))

    def _once(self, findings: Iterable[Finding]) -> list[Finding]:
        """Those that are worth saying and have not been said."""
        new = [f for f in findings if f.level != "ok" and _key(f) not in self.said]
        self.said.update(map(_key, new))
        return new

    def _spike(self, loss: float) -> Iterator[Finding]:
        steps = len(self.recent.numbers)
        if steps < limits.SPIKE_WINDOW // 3:
            return
        mean = self.recent.mean
        z = (loss - mean) / max(self.recent.spread, limits.SPIKE_SPREAD)
        if self.spike(z > limits.SPIKE, z < 1):
            yield Finding(
                "problem",
                "loss spike",
                f"loss {loss:.3f}, {z:.1f} standard deviations above the {mean:.3f} of the last {steps} steps",
                "One step threw the model off, or this batch is unlike the others.",
                f"If it comes back: a smaller lr than {self.config.lr:g}, a longer warmup than {self.config.warmup}, "
                f"a lower clip than {self.config.clip:g}; else look at the data.",
            )

    def _clipped(self, norm: float) -> Iterator[Finding]:
        self.clipped = self.clipped + 1 if norm > self.config.clip else 0
        if self.always_clipped(self.clipped >= limits.CLIPPED, self.clipped == 0):
            yield Finding(
                "note",
                "clipping",
                f"every gradient of the last {self.clipped} steps was longer than {self.config.clip:g}, "
                f"now {norm:.3g}",
                "Clipping is for the rare large gradient; now it sets the length of every step.",
                f"Raise clip above {norm:.2g}, or take a smaller lr.",
            )

    def _overfits(self) -> Iterator[Finding]:
        best = min(range(len(self.evaluations)), key=lambda i: self.evaluations[i][1])
        (at, lowest, then), (_, last, now) = self.evaluations[best], self.evaluations[-1]
        waited = len(self.evaluations) - 1 - best
        rises = waited >= limits.RISING and last > lowest * (1 + limits.RISEN) and now < then
        if self.overfits(rises, waited == 0):
            yield Finding(
                "problem",
                "overfitting",
                f"validation {last:.3f} after {lowest:.3f} at step {at}, "
                f"while training fell from {then:.3f} to {now:.3f}",
                "It learns the training text by heart, and what it learns no longer holds for other text.",
                f"Stop at the best step (patience {limits.RISING}), or take more text, dropout, a smaller model, "
                "more weight_decay.",
            )


def _key(finding: Finding) -> tuple[str, str]:
    """What makes two findings the same one, whatever their numbers."""
    return finding.about, finding.advice


def in_a_line(finding: Finding) -> str:
    """A finding as the log says it."""
    level = "" if finding.level == "ok" else f"{finding.level}: "
    advice = f" Try: {finding.advice}" if finding.advice else ""
    return f"{level}{finding.about}: {finding.measured}. {finding.meaning}{advice}"
