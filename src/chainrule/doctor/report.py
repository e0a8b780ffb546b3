"""One call that examines a model: `doctor.diagnose(model, batch)`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule.autograd import no_grad
from chainrule.doctor import rules
from chainrule.doctor.finding import Finding
from chainrule.files import plain
from chainrule.inspect import gradients
from chainrule.inspect.activations import ACTIVATIONS, STREAM, LayerReport, layers
from chainrule.inspect.gradients import ParameterReport
from chainrule.inspect.losses import OUTPUTS, captured_entropy, expected_loss
from chainrule.inspect.probe import Loss, run, untouched
from chainrule.models import Model
from chainrule.optim import Optimizer


@dataclass(frozen=True)
class Report:
    """A model on one batch: plain numbers, and what they mean."""

    loss: float
    expected_loss: float | None
    """ln V, if the model has a vocabulary."""
    entropy: float | None
    """Mean entropy of the predicted distributions, in nats: ln V for a uniform guess, less the more sure it is."""
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
            "entropy": self.entropy,
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
    optimizer: Optimizer | None = None,
    lr: float | None = None,
    step: int = 0,
    clip: float | None = None,
) -> Report:
    """Examine a model on one batch, forward and backward, and leave it exactly as it was.

    The loss is `model.loss(*batch)`, or `loss(model, *batch)`. With an optimizer the size of its next update (at the
    rate `lr`) is measured too. `step` is the number of steps made: the loss of a fresh model should be ln V. `clip` is
    the length that training cuts gradients to; advice depends on it.

    >>> import chainrule as cr, numpy as np
    >>> cr.seed(0)
    >>> model = cr.models.GPT(cr.models.GPTConfig(n_layer=2, n_head=2, n_embd=32, block_size=16, vocab_size=27))
    >>> ids = np.arange(17) % 27
    >>> report = cr.doctor.diagnose(model, (ids[None, :-1], ids[None, 1:]))
    >>> report.findings[0].code
    <Code.INITIAL_LOSS_OK: 'initial_loss_ok'>
    """
    n_classes = _n_classes(model, batch, loss)
    with untouched(model):
        value, seen = run(model, batch, (*ACTIVATIONS, STREAM, *OUTPUTS), loss)
        found = layers(seen)
        params = gradients.parameters(model.parameters(), optimizer, lr)
        spread = _logit_spread(model, batch) if n_classes and step == 0 else None
    findings: list[Finding] = []
    if n_classes and step > 0 and math.isfinite(value):
        findings.append(rules.loss_in_training(value, n_classes))
    elif n_classes:
        findings.append(rules.initial_loss(value, n_classes, spread))
    findings += [*rules.of_layers(found, fresh=step == 0, clip=clip), *rules.of_parameters(params)]
    expected = expected_loss(n_classes) if n_classes else None
    return Report(value, expected, captured_entropy(seen), tuple(found), tuple(params), tuple(findings))


def _n_classes(model: Any, batch: tuple[Any, ...], loss: Loss | None) -> int | None:
    """The number of tokens or labels to choose from; None if the loss has several parts or no such choice."""
    if isinstance(model, Model) and loss is None:
        return model.n_classes if len(model.counts(*batch)) == 1 else None
    return getattr(getattr(model, "config", None), "vocab_size", None)


def _logit_spread(model: Any, batch: tuple[Any, ...]) -> float | None:
    """Standard deviation of the logits of the first example; those of a whole batch can be a large array."""
    if not isinstance(batch[0], np.ndarray):
        return None
    model.eval()
    with no_grad(), np.errstate(all="ignore"):
        return float(np.std(model(batch[0][:1]).numpy(), axis=-1).mean())
