"""Rules for good training text: simple measures, each with its accepted range.

The ranges fit prose in languages that put spaces between words, as in Rae et al. 2021 ("Gopher", appendix A); other
texts need other rules.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A measure and its range; a text outside is dropped, with `name` as the reason."""

    name: str
    measure: Callable[[str], float]
    low: float = -math.inf
    high: float = math.inf

    def broken(self, text: str) -> bool:
        return not self.low <= self.measure(text) <= self.high


def length(text: str) -> int:
    """Characters without surrounding space: a very short text is a heading or a button."""
    return len(text.strip())


def letters(text: str) -> float:
    """Fraction of letters among visible characters: tables, logs and encoded data have few."""
    visible = "".join(text.split())
    return sum(map(str.isalpha, visible)) / len(visible) if visible else 0.0


def word_length(text: str) -> float:
    """Mean length of a word: URLs and base64 are long, s p a c e d letters short."""
    words = text.split()
    return sum(map(len, words)) / len(words) if words else 0.0


def repeated_lines(text: str) -> float:
    """Fraction of lines that occur more than once: menus and templates repeat themselves."""
    counts = Counter(line.strip() for line in text.splitlines() if line.strip())
    total = sum(counts.values())
    return sum(n for n in counts.values() if n > 1) / total if total else 0.0


def compressed(text: str) -> float:
    """Compressed size over size: repetition compresses to almost nothing, prose to a third or a half."""
    content = text.encode("utf-8", "surrogatepass")
    return len(zlib.compress(content, 1)) / len(content) if content else 0.0


RULES = (
    Rule("short", length, low=50),
    Rule("few letters", letters, low=0.6),
    Rule("odd words", word_length, low=2, high=12),
    Rule("repeated lines", repeated_lines, high=0.3),
    Rule("repetition", compressed, low=0.1),
)
