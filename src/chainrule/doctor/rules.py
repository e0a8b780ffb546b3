"""From measurements to words: which numbers are worth saying, what they mean, what to try."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from chainrule.doctor import limits
from chainrule.doctor.finding import Finding
from chainrule.inspect.activations import RECTIFYING, SQUASHING, STREAM, LayerReport, factor_per_layer
from chainrule.inspect.gradients import ParameterReport


def of_layers(layers: Sequence[LayerReport], *, fresh: bool) -> Iterator[Finding]:
    """Findings about activations. `fresh` is a model before its first step."""
    broken = [layer.name for layer in layers if not layer.value.finite]
    if broken:
        yield Finding(
            "problem",
            "activations",
            f"{broken[0]} is the first of {len(broken)} layer{'s' * (len(broken) > 1)} with values that are not finite",
            "The forward pass overflows there.",
            "Draw smaller weights before it, or normalise its input.",
        )
    yield from _flat(layers)
    yield from _dead(layers)
    for op, group in _stacks(layers):
        if fresh and op != STREAM:
            yield from _spread(op, group)
        yield from _vanishing(op, group)


def _flat(layers: Sequence[LayerReport]) -> Iterator[Finding]:
    kinds = (
        (
            SQUASHING,
            limits.SATURATED_SHARE,
            "saturated",
            "Their inputs are too large",
            "Draw smaller weights",
        ),
        (
            RECTIFYING,
            limits.SILENT_SHARE,
            "silent",
            "Their inputs are nearly all negative",
            "Start biases at 0",
        ),
    )
    for ops, limit, word, cause, advice in kinds:
        over = [x for x in layers if x.op in ops and x.flat is not None and x.flat > limit]
        if over:
            worst = max(over, key=lambda x: x.flat or 0.0)
            yield Finding(
                "problem",
                "saturation",
                f"{worst.flat:.0%} of {worst.name} is {word} ({_layers(over)} over {limit:.0%})",
                f"{cause}: these entries pass less than a fiftieth of the gradient, and what feeds them hardly learns.",
                f"{advice} (gain/√fan_in), or normalise before the activation.",
            )


def _dead(layers: Sequence[LayerReport]) -> Iterator[Finding]:
    over = [layer for layer in layers if layer.dead]
    if not over:
        return
    worst = max(over, key=lambda layer: len(layer.dead) / layer.units)
    share = len(worst.dead) / worst.units
    yield Finding(
        "problem" if share > limits.DEAD_SHARE else "note",
        "dead units",
        f"{len(worst.dead)} of {worst.units} units of {worst.name} ({_layers(over)} with some)",
        f"No example of {worst.examples:,} moves them, so nothing they read is learnt. A larger sample may find one.",
        "Draw smaller weights and zero biases; take a smaller learning rate if they died in training.",
    )


def _stacks(layers: Sequence[LayerReport]) -> Iterator[tuple[str, list[LayerReport]]]:
    """Layers of the same op, in order, if there are enough for a trend."""
    for op, group in groupby(sorted(layers, key=lambda layer: layer.op), key=lambda layer: layer.op):
        stack = list(group)  # sorted is stable: still in the order of the forward pass
        if len(stack) >= limits.DEPTH:
            yield op, stack


def _spread(op: str, stack: list[LayerReport]) -> Iterator[Finding]:
    spreads = [layer.value.std for layer in stack]
    q = factor_per_layer(spreads)
    low, high = limits.SPREAD
    if math.isnan(q) or low <= q <= high:
        return
    way, cause = ("shrinks", "too small") if q < 1 else ("grows", "too large")
    yield Finding(
        "problem",
        "spread",
        f"the spread of {op} {way} by {q:.2f} per layer, from {spreads[0]:.3g} to {spreads[-1]:.3g}",
        f"The weights are {cause} for this activation; with more layers the signal is lost.",
        "Draw weights with gain/√fan_in (nn.init.kaiming_normal), or normalise between layers.",
    )


def _vanishing(op: str, stack: list[LayerReport]) -> Iterator[Finding]:
    sizes = [layer.grad.std for layer in stack if layer.grad and layer.grad.finite]
    if len(sizes) < len(stack):
        return
    q = factor_per_layer(sizes[::-1])  # from the last layer back
    low, high = limits.GRADIENT
    ratio = sizes[0] / sizes[-1] if sizes[-1] > 0 else math.nan
    beyond = not (1 / limits.GRADIENT_RANGE <= ratio <= limits.GRADIENT_RANGE)
    if math.isnan(q) or low <= q <= high or not beyond:
        return
    way = "vanish" if q < 1 else "explode"
    yield Finding(
        "problem",
        "gradients",
        f"at {op} they {way} by {q:.2f} per layer: {ratio:.2g} times at the first layer",
        "Early layers learn hardly at all." if q < 1 else "Early layers are thrown about.",
        "Use residual connections and the right gain" + (", and clip the gradient." if q > 1 else "."),
    )


def of_parameters(parameters: Sequence[ParameterReport]) -> Iterator[Finding]:
    """Findings about gradients and updates."""
    broken = [p.name for p in parameters if not math.isfinite(p.grad_norm)]
    if broken:
        yield Finding(
            "problem",
            "gradients",
            f"{_some(broken)}: the gradient is not finite",
            "A step with it would destroy the model.",
            "Take a smaller learning rate; look for overflow in the forward pass.",
        )
    silent = [p.name for p in parameters if p.grad_norm == 0]
    if silent:
        yield Finding(
            "problem",
            "gradients",
            f"{_some(silent)}: the gradient is 0",
            "They do not take part in the loss, or what follows them is zero or dead.",
            "Check that the forward pass uses them and that not all weights start at 0.",
        )
    yield from _updates(parameters)


def _updates(parameters: Sequence[ParameterReport]) -> Iterator[Finding]:
    ratios = {p.name: p.update_ratio for p in parameters if p.update_ratio is not None}
    if not ratios:
        return
    low, high = limits.UPDATE_RATIO
    median = sorted(ratios.values())[len(ratios) // 2]
    said = f"one step moves a matrix by {median:.1g} of its length (median of {len(ratios)})"
    large = [name for name, ratio in ratios.items() if ratio > high]
    small = [name for name, ratio in ratios.items() if ratio < low]
    if large:
        meaning = f"Beyond {high:g} for {_some(large)}: ten such steps replace all it has learnt."
        advice = "Take a smaller learning rate, or a longer warm-up."
        yield Finding("problem" if median > high else "note", "updates", said, meaning, advice)
    if small:
        meaning = f"Below {low:g} for {_some(small)}: a thousand steps change a hundredth of it."
        advice = "Take a larger learning rate, unless it is warming up or cooling down."
        yield Finding("note", "updates", said, meaning, advice)
    if not large and not small:
        yield Finding("ok", "updates", said, "Fast enough to learn, slow enough to keep it.")


def _layers(layers: Sequence[LayerReport]) -> str:
    return f"{len(layers)} layer{'s' if len(layers) > 1 else ''}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
