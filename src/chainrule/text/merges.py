"""Words cut into pieces, and counts that each merge keeps up to date: what training BPE and WordPiece share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

Pair = tuple[str, str]


class Pieces:
    """Distinct words as lists of pieces, each with its frequency; pieces and adjacent pairs are counted by it.

    A merge visits only the words that hold the pair, so training takes about as long as it changes something.
    """

    def __init__(self, words: Mapping[tuple[str, ...], int]) -> None:
        self.words = [list(word) for word in words]
        self.frequency = list(words.values())
        self.count: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        self.changed: set[Pair] = set()  # pairs counted anew since the caller last looked
        self._where: defaultdict[Pair, set[int]] = defaultdict(set)
        for index in range(len(self.words)):
            self._add(index, +1)

    def merge(self, pair: Pair, merged: str) -> None:
        """Put `merged` wherever `pair` stands, from left to right."""
        for index in sorted(self._where[pair]):
            self._add(index, -1)
            self.words[index] = apply_merge(self.words[index], pair, merged)
            self._add(index, +1)

    def _add(self, index: int, sign: int) -> None:
        word, weight = self.words[index], sign * self.frequency[index]
        for piece in word:
            self.count[piece] += weight
        for pair in pairwise(word):
            self.pairs[pair] += weight
            self.changed.add(pair)
            if sign > 0:
                self._where[pair].add(index)
            else:
                self._where[pair].discard(index)
            if not self.pairs[pair]:
                del self.pairs[pair]


def apply_merge(word: Sequence[str], pair: Pair, merged: str) -> list[str]:
    """
    >>> apply_merge(["l", "o", "w", "l", "o"], ("l", "o"), "lo")
    ['lo', 'w', 'lo']
    """
    out: list[str] = []
    place = 0
    while place < len(word):
        here = tuple(word[place : place + 2]) == pair
        out.append(merged if here else word[place])
        place += 2 if here else 1
    return out


def as_texts(texts: str | Iterable[str]) -> Iterator[str]:
    """One text or many, as many."""
    return iter([texts] if isinstance(texts, str) else texts)
