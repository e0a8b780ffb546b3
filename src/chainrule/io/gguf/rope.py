"""Scaled rotary positions in GGUF: linear scaling as a setting, Llama 3's as a tensor that divides the frequencies.

llama.cpp stores only the result of Llama 3's rule. The constants of the rule are those of all published models, unless
settings of Chainrule say otherwise; the tensor must equal what they give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import FormatError
from chainrule.io.gguf.file import Stored
from chainrule.io.lazy import Arrays
from chainrule.io.settings import Settings
from chainrule.models import LlamaConfig
from chainrule.nn import LinearScaling, Llama3Scaling, RopeScaling, frequencies

TENSOR = "rope_freqs.weight"
LONG = "rope_factors_long.weight"  # of Phi-3 for long contexts
TYPE, FACTOR, OLDER_FACTOR = "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear"  # after the kind
OURS = "chainrule.rope_scaling."


def read_scaling(
    kind: str, settings: Settings, tensors: Mapping[str, Stored], size: int, base: float
) -> RopeScaling | None:
    """The scaling of the frequencies of a head of `size` numbers in a file with a model of this kind, or None."""
    if LONG in tensors:
        raise FormatError(f"{LONG}: longrope (is not supported, must be linear or Llama 3's)")
    if TENSOR in tensors:
        settings.must(f"{kind}.{TYPE}", "none")
        divisors = tensors[TENSOR]
        if divisors.size != -(-size // 2):  # so that a size is never more than the file can hold
            raise FormatError(
                f"{TENSOR} has {divisors.size} numbers for a head of {size} (must be half as many)"
            )
        return _llama3(settings, divisors.array().ravel(), frequencies(size, base))
    known = {"none": "none", "linear": "linear"}
    factor = settings.number(f"{kind}.{FACTOR}", f"{kind}.{OLDER_FACTOR}", default=1.0)
    if settings.choice(f"{kind}.{TYPE}", known, "linear") == "none" or factor == 1:
        return None
    return LinearScaling(factor)


def _llama3(settings: Settings, divisors: Array, plain: Array) -> Llama3Scaling:
    found = Llama3Scaling(
        factor=settings.number(OURS + "factor", default=float(divisors.max(initial=1.0))),
        low_freq_factor=settings.number(OURS + "low_freq_factor", default=1.0),
        high_freq_factor=settings.number(OURS + "high_freq_factor", default=4.0),
        original_max_position_embeddings=settings.integer(
            OURS + "original_max_position_embeddings", default=8192
        ),
    )
    if not np.allclose(divisors, _divisors(found, plain), rtol=1e-4):
        raise FormatError(
            f"{TENSOR} differs from Llama 3's rule with factor {found.factor:g} (must be equal)"
        )
    return found


def write_scaling(config: LlamaConfig) -> tuple[dict[str, Any], Arrays]:
    """The settings and tensors of a scaling."""
    match config.rope_scaling:
        case LinearScaling(factor):
            kind = config.variant
            return {f"{kind}.{TYPE}": "linear", f"{kind}.{FACTOR}": float(factor)}, {}
        case Llama3Scaling() as scaling:
            plain = frequencies(config.head_size, config.rope_base)
            values = {OURS + name: value for name, value in asdict(scaling).items()}
            return values, {TENSOR: _divisors(scaling, plain).astype(np.float32)}
    return {}, {}


def _divisors(scaling: RopeScaling, plain: Array) -> Array:
    return plain / scaling.slowed(plain)
