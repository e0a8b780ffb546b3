"""Figures of the lessons that can be moved: each is computed anew for the numbers that a learner chooses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from chainrule.errors import ConfigError
from chainrule.web.lessons import drawings
from chainrule.web.lessons.drawings import Made


class Knob(NamedTuple):
    """A number that can be moved."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float


class Figure(NamedTuple):
    """What a figure shows, and of what."""

    title: str
    about: str
    knobs: tuple[Knob, ...]
    make: Callable[..., Made]


FIGURES = {
    "slope": Figure(
        "A secant becomes the tangent",
        "Make h small: the secant through two points turns into the tangent, and its slope into the derivative.",
        (Knob("x", "x", -1.5, 2.5, 0.1, 1.5), Knob("h", "h", 0.01, 1.5, 0.01, 1.0)),
        drawings.slope,
    ),
    "activations": Figure(
        "Five bends and their slopes",
        "Where the slope is near 0, a gradient does not come through.",
        (),
        drawings.activations,
    ),
    "descent": Figure(
        "Gradient descent on θ²",
        "Each step multiplies θ by 1 − 2η. Find the rate that arrives in one step, and the one that never ends.",
        (Knob("rate", "learning rate η", 0.02, 1.1, 0.01, 0.1),),
        drawings.descent,
    ),
    "valley": Figure(
        "Five optimizers in a narrow valley",
        "The valley (x² + 20 y²)/2 is twenty times steeper across than along. The goal is (0, 0); each has 40 steps.",
        (Knob("rate", "learning rate η", 0.01, 0.5, 0.01, 0.09),),
        drawings.valley,
    ),
    "first-losses": Figure(
        "The same training, two ways to draw the first weights",
        "Bad weights are sure of wrong letters: the loss begins far above ln V, and the first steps take that back.",
        (),
        drawings.first_losses,
    ),
    "depth": Figure(
        "A gradient on its way back through thirty layers",
        "Entries of the matrices have the spread scale/√n.",
        (Knob("scale", "scale", 0.2, 2.0, 0.05, 0.8),),
        drawings.depth,
    ),
    "time": Figure(
        "A gradient on its way back through fifty steps",
        "Nine random recurrent networks; entries of W_h have the spread scale/√n.",
        (Knob("scale", "scale", 0.3, 4.0, 0.05, 1.0),),
        drawings.through_time,
    ),
    "gates": Figure("What gates keep", "Three networks that read the same inputs.", (), drawings.gates),
    "mixture": Figure(
        "A query among three keys",
        "Turn the query toward a key, and that key's value (here the same point) makes up most of the output. "
        "A longer query is choosier.",
        (
            Knob("angle", "direction of the query in degrees", 0, 360, 1, 90),
            Knob("length", "length of the query", 0, 12, 0.1, 3),
        ),
        drawings.mixture,
    ),
    "scores": Figure(
        "Why scores are divided by √d",
        "The dot product of two random vectors of size d has the variance d. "
        "Softmax of such scores takes nearly all from one key.",
        (Knob("d", "size d", 2, 256, 1, 64),),
        drawings.scores,
    ),
    "average": Figure(
        "Rows of weights",
        "Each row sums to 1: where a position looks. First a plain average of what came before; "
        "then two heads with random matrices, one that sees all and a causal one.",
        (),
        drawings.average,
    ),
    "heads": Figure(
        "Two heads that share the work",
        "A GPT of one layer was trained, just now, to name the first letter and the one before. One head took each.",
        (),
        drawings.heads,
    ),
    "temperature": Figure(
        "Temperature",
        "Logits 3, 2, 1, 0.5, −1, divided by the temperature before softmax.",
        (Knob("t", "temperature", 0.1, 5.0, 0.1, 0.5),),
        drawings.temperature,
    ),
}  # fmt: skip


def drawn(name: str, given: dict[str, str]) -> Made:
    """A figure at the numbers that were given; others have their usual value."""
    if name not in FIGURES:
        raise ConfigError(f"figure {name[:40]!r}: no such figure (must be one of {', '.join(FIGURES)})")
    figure = FIGURES[name]
    values = {knob.name: _value(knob, given.get(knob.name)) for knob in figure.knobs}
    made = figure.make(**values)
    numbers = [{"name": key, "value": float(value)} for key, value in made["numbers"].items()]
    knobs = [knob._asdict() | {"value": values[knob.name]} for knob in figure.knobs]
    about = {"name": name, "title": figure.title, "about": figure.about, "knobs": knobs, "maps": []}
    return about | made | {"numbers": numbers}


def _value(knob: Knob, text: str | None) -> float:
    try:
        value = knob.value if text is None else float(text)
    except ValueError:
        value = math.nan
    if not knob.low <= value <= knob.high:
        raise ConfigError(
            f"{knob.name} is {str(text)[:40]!r} (must be a number from {knob.low:g} to {knob.high:g})"
        )
    return value
