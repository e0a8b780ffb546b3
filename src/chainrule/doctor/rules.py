"""From measurements to findings: which numbers are worth saying, by the limits in `limits.py`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from chainrule.doctor import limits
from chainrule.doctor.finding import Code, Finding, Level
from chainrule.doctor.messages import finding
from chainrule.inspect.activations import RECTIFYING, SQUASHING, STREAM, LayerReport, factor_per_layer
from chainrule.inspect.embedding_space import EmbeddingReport
from chainrule.inspect.generalization import SplitLosses
from chainrule.inspect.gradients import ParameterReport
from chainrule.inspect.losses import Curve, expected_loss

# -- losses ------------------------------------------------------------------------------------------------------


def initial_loss(loss: float, n_classes: int, logit_spread: float | None = None) -> Finding:
    """Is the loss of an untrained model ln n_classes, and if not, why?"""
    expected = expected_loss(n_classes)
    spread = ""
    if not math.isfinite(loss):
        code = Code.INITIAL_LOSS_NOT_FINITE
    elif loss > expected * (1 + limits.INITIAL_LOSS):
        code = Code.INITIAL_LOSS_HIGH
        implied = math.sqrt(2 * (loss - expected))  # a normal spread s costs s²/2 nats
        spread = f"{implied:.1f}" if logit_spread is None else f"{logit_spread:.1f} (measured)"
    elif loss < expected * (1 - limits.UNTRAINED):
        code = Code.INITIAL_LOSS_LOW
    else:
        code = Code.INITIAL_LOSS_OK
    return finding(code, loss=loss, n_classes=n_classes, expected=expected, spread=spread)


def loss_in_training(loss: float, n_classes: int) -> Finding:
    """Is a model that has been trained better than guessing?"""
    expected = expected_loss(n_classes)
    code = Code.LOSS_OK if loss < expected else Code.LOSS_HIGH
    return finding(code, loss=loss, n_classes=n_classes, expected=expected)


def of_curve(curve: Curve) -> Finding:
    """Does a loss curve start at ln n_classes, fall, and stay down?"""
    if curve.broken is not None:
        step, loss = curve.broken
        return finding(Code.CURVE_NOT_FINITE, step=step, loss=loss)
    if curve.last > curve.lowest + limits.DIVERGED:
        code = Code.CURVE_DIVERGES
    elif curve.first > curve.expected + limits.HOCKEY_STICK:
        code = Code.CURVE_HOCKEY_STICK
    elif curve.first - curve.lowest < limits.FLAT_CURVE * curve.first:
        code = Code.CURVE_FLAT
    elif curve.last >= curve.first:
        code = Code.CURVE_RISES
    else:
        code = Code.CURVE_OK
    return finding(code, **vars(curve), expected=curve.expected)


def of_splits(
    losses: SplitLosses, *, trained: Sequence[float] = (), evaluated: Sequence[float] = ()
) -> Finding:
    """Does what a model knows hold for text it has not seen?

    `trained` are the losses of the steps so far, `evaluated` those of the evaluations: they say what still falls.
    """
    if losses.validation <= losses.train * (1 + limits.OVERFITTED):
        code = Code.SPLITS_LEARNING if _falling(trained) else Code.SPLITS_OK
    elif not evaluated or evaluated[-1] > min(evaluated) * (1 + limits.RISEN):
        code = Code.SPLITS_OVERFIT
    else:
        code = (
            Code.SPLITS_APART if evaluated[-1] < min(evaluated[:-1], default=math.inf) else Code.SPLITS_LEVEL
        )
    return finding(code, train=losses.train, validation=losses.validation, of=losses.of)


def _falling(losses: Sequence[float]) -> bool:
    quarter = len(losses) // 4
    if not quarter:
        return True  # hardly begun
    before, last = (sum(part) / quarter for part in (losses[-2 * quarter : -quarter], losses[-quarter:]))
    return last < before * (1 - limits.FALLING)


def of_embeddings(space: EmbeddingReport) -> Finding:
    """Do the vectors use all directions?"""
    code = Code.EMBEDDINGS_CONE if space.anisotropy > limits.ANISOTROPIC else Code.EMBEDDINGS_OK
    return finding(code, anisotropy=space.anisotropy, centered=space.centered)


# -- layers ------------------------------------------------------------------------------------------------------


def of_layers(layers: Sequence[LayerReport], *, fresh: bool, clip: float | None = None) -> Iterator[Finding]:
    """Findings about activations. `fresh` is a model before its first step; `clip` bounds its gradients."""
    broken = [layer for layer in layers if not layer.value.finite]
    if broken:
        yield finding(Code.ACTIVATIONS_NOT_FINITE, name=broken[0].name, layers=_layers(broken))
    yield from _flat(layers, fresh)
    yield from _dead(layers, fresh)
    for op, group in _stacks(layers):
        if fresh and op != STREAM:
            yield from _spread(op, group)
        yield from _depth(op, group, _cure(layers), clip)


def _flat(layers: Sequence[LayerReport], fresh: bool) -> Iterator[Finding]:
    """After training a state that saturates may be what the model has learned, such as a memory: a note."""
    level: Level = "problem" if fresh else "note"
    kinds = (
        (Code.SATURATED, SQUASHING, limits.SATURATED_FRACTION),
        (Code.SILENT, RECTIFYING, limits.SILENT_FRACTION),
    )
    for code, ops, limit in kinds:
        over = [x for x in layers if x.op in ops and x.flat is not None and x.flat > limit]
        if over:
            worst = max(over, key=lambda x: x.flat or 0.0)
            yield finding(
                code, level, fraction=worst.flat, name=worst.name, layers=_layers(over), limit=limit
            )


def _dead(layers: Sequence[LayerReport], fresh: bool) -> Iterator[Finding]:
    """A trained model may do without some units on these examples; without most of them it cannot have meant to."""
    over = [layer for layer in layers if layer.dead]
    if not over:
        return
    worst = max(over, key=lambda layer: len(layer.dead) / layer.units)
    many = len(worst.dead) / worst.units > (limits.DEAD_FRACTION if fresh else limits.DEAD_TRAINED)
    said = {"dead": len(worst.dead), "units": worst.units, "name": worst.name, "examples": worst.examples}
    yield finding(Code.DEAD_UNITS, "problem" if many else "note", **said, layers=_layers(over))


def _stacks(layers: Sequence[LayerReport]) -> Iterator[tuple[str, list[LayerReport]]]:
    """Layers at the same place of repeated blocks (h.0.gelu, h.1.gelu, ...), if there are enough for a trend."""
    stacks: dict[str, list[LayerReport]] = {}
    for layer in layers:
        stacks.setdefault(re.sub(r"\d+", "N", layer.name), []).append(layer)
    yield from ((stack[0].op, stack) for stack in stacks.values() if len(stack) >= limits.DEPTH)


def _spread(op: str, stack: list[LayerReport]) -> Iterator[Finding]:
    spreads = [layer.value.std for layer in stack]
    q = factor_per_layer(spreads)
    low, high = limits.SPREAD
    if math.isnan(q) or low <= q <= high:
        return
    code = Code.SPREAD_SHRINKS if q < 1 else Code.SPREAD_GROWS
    yield finding(code, op=op, factor=q, first=spreads[0], last=spreads[-1])


def _cure(layers: Sequence[LayerReport]) -> str:
    """What the model does not have yet against gradients that change with depth."""
    if any(layer.op == STREAM for layer in layers):
        return "Initialize the layers inside the residual branches with smaller weights, or normalize their inputs"
    return "Use residual connections and the right gain"


def _gradient_size(layer: LayerReport) -> float | None:
    """The spread of the gradient; of the residual stream times that of its values.

    A norm reads the stream, so a sum ten times as large gets a tenth of the gradient, and no layer learns less.
    """
    if layer.grad is None or not layer.grad.finite:
        return None
    return layer.grad.std * layer.value.std if layer.op == STREAM else layer.grad.std


def _depth(op: str, stack: list[LayerReport], cure: str, clip: float | None) -> Iterator[Finding]:
    sizes = [size for layer in stack if (size := _gradient_size(layer)) is not None]
    if len(sizes) < len(stack):
        return
    q = factor_per_layer(sizes[::-1])  # from the last layer back
    low, high = limits.GRADIENT
    ratio = sizes[0] / sizes[-1] if sizes[-1] > 0 else math.nan
    beyond = not (1 / limits.GRADIENT_RANGE <= ratio <= limits.GRADIENT_RANGE)
    if math.isnan(q) or low <= q <= high or not beyond:
        return
    code = Code.GRADIENTS_VANISH if q < 1 else Code.GRADIENTS_EXPLODE
    if code is Code.GRADIENTS_EXPLODE and not clip:
        cure += ", and clip the gradient"
    yield finding(code, op=op, factor=q, ratio=ratio, cure=cure)


# -- parameters --------------------------------------------------------------------------------------------------


def of_parameters(parameters: Sequence[ParameterReport]) -> Iterator[Finding]:
    """Findings about gradients and updates."""
    broken = [p.name for p in parameters if not math.isfinite(p.grad_norm)]
    if broken:
        yield finding(Code.GRADIENT_NOT_FINITE, names=_some(broken))
    zero = [p.name for p in parameters if p.grad_norm == 0]
    if zero:
        yield finding(Code.GRADIENT_ZERO, names=_some(zero))
    yield from _updates(parameters)


def _updates(parameters: Sequence[ParameterReport]) -> Iterator[Finding]:
    ratios = {p.name: p.update_ratio for p in parameters if p.update_ratio is not None}
    if not ratios:
        return
    low, high = limits.UPDATE_RATIO
    median = sorted(ratios.values())[len(ratios) // 2]
    said = {"median": median, "count": len(ratios)}
    large = [name for name, ratio in ratios.items() if ratio > high]
    small = [name for name, ratio in ratios.items() if ratio < low]
    if large:
        level: Level = "problem" if median > high else "note"
        yield finding(Code.UPDATES_LARGE, level, **said, limit=high, names=_some(large))
    if small:
        yield finding(Code.UPDATES_SMALL, **said, limit=low, names=_some(small))
    if not large and not small:
        yield finding(Code.UPDATES_OK, **said)


def _layers(layers: Sequence[LayerReport]) -> str:
    return f"{len(layers)} layer{'s' * (len(layers) > 1)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
