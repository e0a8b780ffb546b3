"""Losses that are finite and say that a training has failed: far above those of a model that knows nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chainrule.errors import Setting
from chainrule.train.config import TrainConfig
from chainrule.train.skips import Diverged

FAR = 10  # times the loss of a uniform guess, or of the first batch: no step comes back from there
LEAST = 50.0  # nats; a small batch of few classes may cost several times its uniform guess
WORSE = 1.5  # times the same, where a training may not end
STILL = 3  # steps in a row without any gradient: the gradients of one batch may cancel out
END = 20  # steps at least, and a twentieth of all, are the end of a training: single batches are noisy


class Bounds:
    """How large the losses of one training may be. `uniform` is the loss of a uniform guess, if that is known.

    >>> from chainrule.train.bounds import Bounds
    >>> from chainrule.train.config import TrainConfig
    >>> bounds = Bounds(uniform=4.2)
    >>> bounds.check(4.3, 1, TrainConfig())
    >>> bounds.check(2e13, 2, TrainConfig())
    Traceback (most recent call last):
    chainrule.train.skips.Diverged: train: loss 2e+13 at step 2 (diverged, it began near 4.2): try a smaller lr than 0.003; the step is not kept
    """  # noqa: E501

    def __init__(self, uniform: float | None) -> None:
        self.uniform = uniform
        self.start = uniform or 0.0
        self.still = 0  # steps in a row without any gradient

    def begin(self, loss: float) -> None:
        """Learn the loss of the first batch, before any update; it may be larger than that of a guess."""
        if math.isfinite(loss):
            self.start = max(loss, self.start)

    def recall(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Learn from a log what was known when it was written: a resumed training fails where an unbroken one does."""
        for record in records:
            if (loss := record.get("loss")) is not None:
                if record["step"] == 1:
                    self.begin(loss)
                self._count_still(record.get("norm"), loss)

    def check(self, loss: float, step: int, config: TrainConfig, what: str = "loss") -> None:
        """Refuse a loss from which no training comes back; one that is not finite is another matter."""
        if math.isfinite(loss) and loss > max(LEAST, FAR * self.start):
            raise self._diverged(f"{what} {loss:.4g} at step {step}", config, "; the step is not kept")

    def check_gradient(self, norm: float, loss: float, step: int, config: TrainConfig) -> None:
        """Refuse gradients of exactly 0 while there is much to learn: every unit is dead, and stays so."""
        self._count_still(norm, loss)
        if self.still >= STILL:
            raise self._diverged(
                f"gradient 0 with loss {loss:.4g} at step {step}", config, "; the step is not kept"
            )

    def _count_still(self, norm: float | None, loss: float) -> None:
        nothing = norm == 0 and self.uniform is not None and loss > self.uniform / 2
        self.still = self.still + 1 if nothing else 0

    def check_end(self, losses: Sequence[float], config: TrainConfig) -> None:
        """Refuse to call a training done that ends far above where it began; `losses` are those of all its steps."""
        last = losses[-max(END, len(losses) // END) :]
        bound = WORSE * self.start
        if self.uniform is None or len(losses) < END or sum(last) / len(last) <= bound:
            return
        below = max((number for number, loss in enumerate(losses, start=1) if loss <= bound), default=0)
        said = f"loss {sum(last) / len(last):.4g} at the end, above {bound:.4g} since step {below + 1}"
        raise self._diverged(said, config)

    def _diverged(self, said: str, config: TrainConfig, kept: str = "") -> Diverged:
        known = f", it began near {self.start:.3g}" if self.start else ""
        return Diverged(
            f"train: {said} (diverged{known}): try a smaller ", Setting("lr"), f" than {config.lr:g}{kept}"
        )
