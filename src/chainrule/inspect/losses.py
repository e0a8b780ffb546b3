"""What a loss says: at the first step, in training, along a curve, and of logits made by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.doctor import limits
from chainrule.doctor.finding import Finding
from chainrule.errors import ConfigError, DataError


def expected_loss(vocab_size: int) -> float:
    """-ln(1/V) = ln V: the loss of a model that knows nothing and claims nothing.

    >>> from chainrule.inspect.losses import expected_loss
    >>> round(expected_loss(27), 4)
    3.2958
    """
    if vocab_size < 1:
        raise ConfigError(f"expected_loss: vocab_size is {vocab_size} (must be at least 1)")
    return math.log(vocab_size)


def initial_loss(loss: float, vocab_size: int, logit_spread: float | None = None) -> Finding:
    """Is the loss of an untrained model ln V, and if not, why?"""
    expected = expected_loss(vocab_size)
    measured = f"{loss:.3f} nats, ln {vocab_size} = {expected:.3f}"
    if not math.isfinite(loss):
        return Finding(
            "problem", "initial loss", measured, "The forward pass overflows.", "Draw smaller weights."
        )
    if loss > expected * (1 + limits.INITIAL_LOSS):
        spread = math.sqrt(2 * (loss - expected))  # a normal spread s costs s²/2 nats
        said = f"{spread:.1f}" if logit_spread is None else f"{logit_spread:.1f} (measured)"
        return Finding(
            "problem",
            "initial loss",
            measured,
            "The untrained model prefers some tokens for no reason; the first steps will only unlearn that. "
            f"Logits with a spread of {said} explain it.",
            "Draw the last layer with small numbers (std 0.02, or 0.01/√fan_in) and its bias as zeros.",
        )
    if loss < expected * (1 - limits.UNTRAINED):
        return Finding(
            "problem",
            "initial loss",
            measured,
            "An untrained model cannot know this much: it has been trained, or its input contains the target.",
            "Check that targets are the inputs shifted by one and that attention is causal.",
        )
    return Finding("ok", "initial loss", measured, "It spreads its bets over all tokens, as it should.")


def loss_in_training(loss: float, vocab_size: int) -> Finding:
    """Is a model that has been trained better than guessing?"""
    expected = expected_loss(vocab_size)
    measured = f"{loss:.3f} nats, guessing costs ln {vocab_size} = {expected:.3f}"
    if loss < expected:
        return Finding("ok", "loss", measured, "It knows more than nothing.")
    return Finding(
        "problem",
        "loss",
        measured,
        "After training it is still no better than guessing.",
        "Take a smaller learning rate; check that the data is the data it was trained on.",
    )


# -- curves ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """The shape of a loss curve."""

    shape: str
    """hockey stick, falling, flat, diverging or not finite"""
    first: float
    lowest: float
    last: float
    """Smoothed over a twentieth of the curve, as is `lowest`."""
    squashing: int
    """Steps until the smoothed loss is down at ln V: spent on undoing the initialisation."""
    finding: Finding


def curve(losses: npt.ArrayLike, vocab_size: int) -> Curve:
    """The shape of the losses of single steps, from the first one on."""
    y = np.asarray(losses, dtype=np.float64)
    if y.ndim != 1 or y.size == 0:
        raise DataError(f"curve: losses of shape {y.shape} (must be one row with at least one step)")
    expected = expected_loss(vocab_size)
    if not np.isfinite(y).all():
        step = int(np.argmin(np.isfinite(y)))
        said = f"the loss of step {step + 1} is {y[step]}"
        advice = "Take a smaller learning rate, a longer warm-up, or clip the gradient."
        finding = Finding("problem", "loss curve", said, "Training broke down.", advice)
        return Curve("not finite", float(y[0]), math.nan, math.nan, step, finding)
    smooth = moving_mean(y, max(1, y.size // 20))
    first, lowest, last = float(y[0]), float(smooth.min()), float(smooth[-1])
    down = np.flatnonzero(smooth <= expected)
    squashing = int(down[0]) if down.size else y.size
    shape, finding = _shape(first, lowest, last, expected, squashing)
    return Curve(shape, first, lowest, last, squashing, finding)


def _shape(first: float, lowest: float, last: float, expected: float, squashing: int) -> tuple[str, Finding]:
    measured = f"from {first:.3f} to {last:.3f} nats, ln V = {expected:.3f}"
    about = "loss curve"
    if last > lowest + limits.DIVERGED:
        meaning = f"It had been down to {lowest:.3f} and rose again."
        return "diverging", Finding("problem", about, measured, meaning, "Take a smaller learning rate.")
    if first > expected + limits.SQUASHED:
        meaning = (
            f"A hockey stick: the first {squashing} steps only shrink the logits to what nobody knows yet."
        )
        advice = "Draw the last layer with small numbers; the curve then starts at ln V."
        return "hockey stick", Finding("problem", about, measured, meaning, advice)
    if first - lowest < limits.FLAT_CURVE * first:
        meaning = "It does not learn."
        advice = "Raise the learning rate; look for layers without gradient."
        return "flat", Finding("problem", about, measured, meaning, advice)
    return "falling", Finding("ok", about, measured, "It starts where it should and falls.")


def moving_mean(y: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """The mean of the last `width` values (of fewer at the start): (n,) -> (n,)"""
    total = np.concatenate([[0.0], np.cumsum(y)])
    stop = np.arange(1, y.size + 1)
    start = np.maximum(stop - width, 0)
    return np.asarray((total[stop] - total[start]) / (stop - start))


# -- hand-made logits --------------------------------------------------------------------------------------------


class HandMade(NamedTuple):
    """Scores of three tokens of which the last is right, what softmax makes of them, and the loss."""

    name: str
    logits: tuple[float, ...]
    p: tuple[float, ...]
    loss: float


LABEL = 2
HAND_MADE = {
    "zeros": (0.0, 0.0, 0.0),
    "uniform in [0, 1]": (0.4946, 0.1297, 0.2467),
    "sure, and right": (0.0, 0.0, 5.0),
    "sure, and wrong": (0.0, 5.0, 0.0),
    "normal, spread 1": (1.366, 1.0108593536974988, 0.24793383684244752),
    "normal, spread 10": (11.958, -10.3641, 9.7887),
    "normal, spread 100": (-212.3578, -144.7072, 6.0214),
}


def hand_made_logits() -> list[HandMade]:
    """The wider the logits, the more the loss depends on luck."""
    rows = []
    for name, logits in HAND_MADE.items():
        x = np.array([logits])
        p, loss = ops.softmax(x)[0], float(ops.cross_entropy(x, targets=np.array([LABEL])))
        rows.append(HandMade(name, logits, tuple(p.tolist()), loss))
    return rows
