"""One call that examines a model: `inspect.diagnose(model, batch)`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule.autograd import no_grad
from chainrule.doctor import rules
from chainrule.doctor.finding import Finding
from chainrule.inspect import gradients, losses
from chainrule.inspect.activations import ACTIVATIONS, STREAM, LayerReport, layers
from chainrule.inspect.gradients import ParameterReport
from chainrule.inspect.plain import plain
from chainrule.inspect.probe import Loss, run, untouched
from chainrule.models import Model
from chainrule.optim import Optimizer


@dataclass(frozen=True)
class Report:
    """A model on one batch: plain numbers, and what they mean."""

    loss: float
    expected_loss: float | None
    """ln V, if the model has a vocabulary."""
    layers: tuple[LayerReport, ...]
    """Activations and residual sums with their gradients, in the order of the forward pass."""
    parameters: tuple[ParameterReport, ...]
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level == "problem")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and dicts, for JSON: None for what is not finite."""
        found = {
            "loss": self.loss,
            "expected_loss": self.expected_loss,
            "findings": [finding.to_dict() for finding in self.findings],
            "layers": [layer.to_dict() for layer in self.layers],
            "parameters": [parameter.to_dict() for parameter in self.parameters],
        }
        return dict(plain(found))


def diagnose(
    model: Any,
    batch: tuple[Any, ...],
    *,
    loss: Loss | None = None,
    optimiser: Optimizer | None = None,
    lr: float | None = None,
    step: int = 0,
) -> Report:
    """Examine a model on one batch, forward and backward, and leave it exactly as it was.

    The loss is `model.loss(*batch)`, or `loss(model, *batch)`. With an optimiser the size of its next update (at the
    rate `lr`) is measured too. `step` is how far training is: the loss of a fresh model should be ln V.

    >>> import chainrule as cr, numpy as np
    >>> cr.seed(0)
    >>> model = cr.models.GPT(cr.models.GPTConfig(n_layer=2, n_head=2, n_embd=32, block_size=16, vocab_size=27))
    >>> ids = np.arange(17) % 27
    >>> report = cr.doctor.diagnose(model, (ids[None, :-1], ids[None, 1:]))
    >>> report.findings[0].level, report.findings[0].meaning
    ('ok', 'It spreads its bets over all tokens, as it should.')
    """
    choices = _choices(model, batch, loss)
    with untouched(model):
        value, seen = run(model, batch, (*ACTIVATIONS, STREAM), loss)
        found = layers(seen)
        params = gradients.parameters(model.parameters(), optimiser, lr)
        spread = _logit_spread(model, batch) if choices and step == 0 else None
    said: list[Finding] = []
    if choices:
        known = step > 0 and math.isfinite(value)
        said.append(
            losses.loss_in_training(value, choices) if known else losses.initial_loss(value, choices, spread)
        )
    said += rules.of_layers(found, fresh=step == 0)
    said += rules.of_parameters(params)
    expected = losses.expected_loss(choices) if choices else None
    return Report(value, expected, tuple(found), tuple(params), tuple(said))


def _choices(model: Any, batch: tuple[Any, ...], loss: Loss | None) -> int | None:
    """Among how many tokens or labels the loss decides; None if it has several parts, or is no such loss."""
    if isinstance(model, Model) and loss is None:
        return model.choices if len(model.counts(*batch)) == 1 else None
    return getattr(getattr(model, "config", None), "vocab_size", None)


def _logit_spread(model: Any, batch: tuple[Any, ...]) -> float | None:
    """Of the first example: one row of logits per token would be a large array for all of them."""
    if not isinstance(batch[0], np.ndarray):
        return None
    model.eval()
    with no_grad(), np.errstate(all="ignore"):
        return float(np.std(model(batch[0][:1]).numpy(), axis=-1).mean())
