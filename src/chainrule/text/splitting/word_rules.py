"""Splitting texts into words, counting and numbering them: shared by the two tokenizers of words.

Python uses a regular expression; C++ (native/text/words.cpp) a scanner, which gets the number of the rule and a table
of character classes made by Python's own expressions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from chainrule import native
from chainrule.text.unicode.utf8 import as_texts, batches, from_utf8, joined, to_utf8
from chainrule.types import Ids

NO_LIMIT = 2**63 - 1
KINDS = re.compile(r"([^\w\s]+)|([^\W\d_]+)|([\d_]+)|(\s+)")  # in the order of Kind in pretokenize.hpp


@dataclass(frozen=True)
class WordRule:
    """What a word is: a regular expression, and its number in words.hpp."""

    word: re.Pattern[str]
    number: int

    def split(self, text: str) -> list[str]:
        return self.word.findall(text)

    def most_frequent(self, texts: str | Iterable[str], min_count: int, limit: int | None) -> list[str]:
        """At most `limit` words that occur at least `min_count` times, by count; ties in alphabetical order."""
        if native.available():
            counter = native.kernels().WordCounter(_classes(), self.number)
            for batch, ends in batches(texts):
                counter.add(batch, ends)
            return [*map(from_utf8, counter.most_frequent(min_count, NO_LIMIT if limit is None else limit))]
        counts: Counter[str] = Counter()
        for text in as_texts(texts):
            counts.update(self.split(text))
        words = sorted((w for w, n in counts.items() if n >= min_count), key=lambda w: (-counts[w], w))
        return words[:limit]


class WordNumbers:
    """The ids of the words of a text; a word without an id becomes `unknown`."""

    def __init__(self, rule: WordRule, ids: Mapping[str, int], unknown: int) -> None:
        self._rule, self._ids, self._unknown = rule, ids, unknown

    def encode(self, text: str) -> Ids:
        """text of n words -> ids (n,)"""
        if native.available():
            return self._encoder.encode(to_utf8(text))
        words = self._rule.split(text)
        return np.fromiter((self._ids.get(word, self._unknown) for word in words), np.int32, len(words))

    @cached_property
    def _encoder(self) -> Any:
        words, ends = joined([to_utf8(word) for word in self._ids])
        ids = np.fromiter(self._ids.values(), np.int32, len(self._ids))
        return native.kernels().WordEncoder(_classes(), self._rule.number, words, ends, ids, self._unknown)


@cache
def _classes() -> Any:
    """The class of every character according to Python's `re`, for the C++ scanner."""
    everything = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    rows = [(run.start(), run.end() - 1, (run.lastindex or 0) - 1) for run in KINDS.finditer(everything)]
    return native.kernels().character_classes(np.array(rows, np.int32))
