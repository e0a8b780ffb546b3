"""How much goes through a model at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Batch:
    """Rows of so many tokens."""

    rows: int = 1
    tokens: int = 1
    source: int = 0
    """Tokens in a row of the encoder's text, if there is an encoder."""
    masked: int = 0
    """Words asked for in all rows together, of a model of masked words."""
    past: int = 0
    """Tokens that a cache already holds."""
