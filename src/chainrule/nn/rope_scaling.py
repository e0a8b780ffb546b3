"""Rotary positions for longer texts than a model was first trained on: the frequencies of its pairs, slowed down.

    linear   ω / factor                  all pairs: positions are squeezed into the original length
    llama3   ω (s + (1 - s) / factor)    s is 1 for pairs that turn often in the original length, 0 for slow ones

The fields are those of Hugging Face's `rope_scaling`. (Chen et al. 2023; Dubey et al. 2024)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError


@dataclass(frozen=True)
class RopeScaling:
    """Base: by how much the slowest pairs are slowed down."""

    factor: float

    def __post_init__(self) -> None:
        for name in (f.name for f in fields(self) if f.init):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < math.inf:
                raise ConfigError(f"rope_scaling: {name} is {value!r} (must be a positive number)")
        if self.factor < 1:
            raise ConfigError(
                f"rope_scaling: factor is {self.factor} (must be at least 1: pairs are slowed down)"
            )

    def slowed(self, frequency: Array) -> Array:
        """Radians per position of each pair -> those that are used instead."""
        raise NotImplementedError


@dataclass(frozen=True)
class LinearScaling(RopeScaling):
    """Every pair is slowed down alike.

    >>> from chainrule import nn
    >>> nn.LinearScaling(factor=4.0).slowed(nn.frequencies(4)).tolist()
    [0.25, 0.0025]
    """

    rope_type: str = field(default="linear", init=False)

    def slowed(self, frequency: Array) -> Array:
        return frequency / self.factor


@dataclass(frozen=True)
class Llama3Scaling(RopeScaling):
    """Pairs that turn `high_freq_factor` times or more in the original length stay as they are, those that turn at
    most `low_freq_factor` times are slowed down by the whole factor, and those between by a part of it."""

    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int
    rope_type: str = field(default="llama3", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low_freq_factor < self.high_freq_factor:
            raise ConfigError(
                f"rope_scaling: low_freq_factor is {self.low_freq_factor}, "
                f"high_freq_factor {self.high_freq_factor} (must be greater)"
            )

    def slowed(self, frequency: Array) -> Array:
        low, high = self.low_freq_factor, self.high_freq_factor
        turns = self.original_max_position_embeddings * frequency / (2 * math.pi)
        fraction = np.clip((turns - low) / (high - low), 0, 1)
        return frequency * (fraction + (1 - fraction) / self.factor)


KINDS: dict[str, type[RopeScaling]] = {"linear": LinearScaling, "llama3": Llama3Scaling}


def rope_scaling(values: Any) -> RopeScaling | None:
    """A scaling from its fields by name, as `dataclasses.asdict` gives them; a scaling or None is returned as it is."""
    if values is None or isinstance(values, RopeScaling):
        return values
    if not isinstance(values, Mapping):
        raise ConfigError(f"rope_scaling is {values!r} (must be fields by name, with rope_type among them)")
    given = dict(values)
    kind = given.pop("rope_type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"rope_scaling: rope_type is {kind!r} (must be one of {', '.join(KINDS)})")
    known = {f.name for f in fields(KINDS[kind]) if f.init}
    if given.keys() != known:
        raise ConfigError(f"rope_scaling: {', '.join(given)} (must be {', '.join(sorted(known))})")
    return KINDS[kind](**given)
