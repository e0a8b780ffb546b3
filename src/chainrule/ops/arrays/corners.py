"""Functions with a corner: |x|, sign, maximum, minimum, bounds.        Derivations: docs/derivations/corners.md

On the corner itself a derivative is chosen: 0 for |x|, half to each of two equal numbers, 1 on a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import saves_inputs
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, is_float
from chainrule.errors import ConfigError
from chainrule.ops._util import away_from_zero, examples, normal, shapes, unbroadcast

_single = examples(shapes((3, 4), draw=away_from_zero), shapes((7, 1), draw=away_from_zero))


def abs_forward(x: Array) -> Result:
    """y = |x|; the subgradient at 0 is 0

    x (...) -> y (...)
    """
    return np.abs(x), (x,)


def abs_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (dy * np.sign(x),)  # forward was: y = |x|                                                  [CO.1]


abs = Op("abs", abs_forward, abs_backward, _single, abstract=saves_inputs, integers=True)


def sign_forward(x: Array) -> Result:
    """y = -1, 0 or 1; flat everywhere but at 0, so its gradient is 0

    x (...) -> y (...)
    """
    return np.sign(x), ()


def sign_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    return (np.zeros_like(dy),)  #                                                                     [CO.2]


sign = Op("sign", sign_forward, sign_backward, _single, integers=True)


def maximum_forward(a: Array, b: Array) -> Result:
    """y = the larger of a and b, which broadcast; where they are equal each gets half of the gradient

    a (...), b (...) -> y (...)
    """
    return np.maximum(a, b), (a, b)


def maximum_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a, b = saved
    return _shared(dy, a, b, a > b, needs)  # forward was: y = max(a, b)                                [CO.3]


def _shared(dy: Array, a: Array, b: Array, first: Array, needs: Needs) -> Grads:
    to_a = np.where(a == b, dy / 2, dy * first)
    return unbroadcast(to_a, a.shape) if needs[0] else None, unbroadcast(dy - to_a, b.shape) if needs[
        1
    ] else None


def _apart(rng: np.random.Generator) -> Iterator[Example]:
    """Pairs that differ by more than the step of a difference quotient."""
    a = normal(rng, 3, 4)
    yield Example((a, a + away_from_zero(rng, 3, 4)))
    yield Example((a, a + away_from_zero(rng, 2, 3, 4)))
    yield Example((away_from_zero(rng, 7, 1), np.float64(0.0)))


maximum = Op("maximum", maximum_forward, maximum_backward, _apart, abstract=saves_inputs, integers=True)


def minimum_forward(a: Array, b: Array) -> Result:
    """y = the smaller of a and b, which broadcast; where they are equal each gets half of the gradient

    a (...), b (...) -> y (...)
    """
    return np.minimum(a, b), (a, b)


def minimum_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a, b = saved
    return _shared(dy, a, b, a < b, needs)  # forward was: y = min(a, b)                                [CO.4]


minimum = Op("minimum", minimum_forward, minimum_backward, _apart, abstract=saves_inputs, integers=True)


def clip_forward(x: Array, *, min: Any = None, max: Any = None) -> Result:
    """y = x, at least `min` and at most `max`; the gradient passes where x lies between them, bounds included

    x (...) -> y (...)
    """
    if min is None and max is None:
        raise ConfigError("clip: min and max are both None (must be one bound at least)")
    if not is_float(x) and any(bound is not None and is_float(np.asarray(bound)) for bound in (min, max)):
        x = x.astype(np.float32)  # a bound of 0.5 is not 0
    low, high = (None if bound is None else np.asarray(bound, x.dtype) for bound in (min, max))
    inside = np.ones(x.shape, bool)
    if low is not None:
        inside &= x >= low
    if high is not None:
        inside &= x <= high
    return np.clip(x, low, high), (inside,)


def clip_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (inside,) = saved
    return (dy * inside,)  # forward was: y = min(max(x, low), high)                                    [CO.5]


clip = Op(
    "clip", clip_forward, clip_backward,
    examples(shapes((3, 4), min=-0.5, max=0.7), shapes((7, 1), max=0.1), shapes((5,), min=0.0)), integers=True,
)  # fmt: skip
