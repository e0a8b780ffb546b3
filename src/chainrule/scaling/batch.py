"""How much goes through a model, what it costs, and what is kept: the words in which parts speak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# What a part runs over: the text, the encoder's text, the places where a word is asked for, each row once.
TOKENS, SOURCE, MASKED, ROWS = "tokens", "source", "masked", "rows"
FLOAT = 4  # bytes of a float32


@dataclass(frozen=True)
class Batch:
    """How much goes through a model at once: rows of so many tokens."""

    rows: int = 1
    tokens: int = 1
    source: int = 0
    """Tokens in a row of the encoder's text, if there is an encoder."""
    masked: int = 0
    """Words asked for in all rows together, of a model of masked words."""
    past: int = 0
    """Tokens that a cache already holds."""

    def positions(self, over: str) -> int:
        """How many positions a part runs over, all rows together."""
        if over == MASKED:
            return self.masked
        return self.rows * {TOKENS: self.tokens, SOURCE: self.source, ROWS: 1}[over]


class Work(NamedTuple):
    """FLOPs of one pass over a batch."""

    forward: int = 0
    backward: int = 0
    again: int = 0
    """Of the backward pass, what forward had done already."""

    @property
    def total(self) -> int:
        return sum(self)


class Kept(NamedTuple):
    """An array that waits for the backward pass."""

    size: int
    itemsize: int = FLOAT
    cheap: bool = False
    """The output of an op that is computed again when it would be large."""

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize
