"""Words cut into pieces, and counts that each merge keeps up to date: what training BPE and WordPiece share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

Pair = tuple[str, str]


class Pieces:
    """Distinct words in pieces, each with its frequency; pieces and adjacent pairs are counted by it.

    The pieces of all words stand in one row of places. Each place knows its neighbors in the word, and each pair the
    places where it begins: a merge visits those and nothing else, so that training takes about as long as it changes
    something, even if the text is one long word.
    """

    def __init__(self, words: Mapping[tuple[str, ...], int]) -> None:
        self.frequency = list(words.values())
        self.count: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        self.changed: set[Pair] = set()  # pairs counted anew since the caller last looked
        self._where: defaultdict[Pair, set[int]] = defaultdict(set)
        self._starts: list[int] = []
        self._piece: list[str] = []
        self._weight: list[int] = []
        self._before: list[int] = []  # the place of the piece before, -1 if there is none
        self._after: list[int] = []
        for word, frequency in words.items():
            self._append(word, frequency)
        for place, piece in enumerate(self._piece):
            self.count[piece] += self._weight[place]
            self._count_pair(place, +1)

    @property
    def words(self) -> list[list[str]]:
        """The words as they are cut now."""
        return [self._word(start) for start in self._starts]

    def merge(self, pair: Pair, merged: str) -> None:
        """Put `merged` wherever `pair` stands, from left to right."""
        where = self._where[pair]
        for place in sorted(where):
            if place in where:  # in "aaa" the second pair goes with the first
                self._join(place, merged)

    def _join(self, place: int, merged: str) -> None:
        """Make one piece of the piece at `place` and the one after it."""
        left, right, weight = self._before[place], self._after[place], self._weight[place]
        for begin in (left, place, right):
            self._count_pair(begin, -1)
        for piece, sign in ((self._piece[place], -1), (self._piece[right], -1), (merged, +1)):
            self.count[piece] += sign * weight
        self._piece[place], self._after[place] = merged, self._after[right]
        if self._after[right] >= 0:
            self._before[self._after[right]] = place
        for begin in (left, place):
            self._count_pair(begin, +1)

    def _count_pair(self, place: int, sign: int) -> None:
        """Count the pair that begins at `place`, if one does, or take it back."""
        if place < 0 or self._after[place] < 0:
            return
        pair = self._piece[place], self._piece[self._after[place]]
        self.pairs[pair] += sign * self._weight[place]
        self.changed.add(pair)
        (self._where[pair].add if sign > 0 else self._where[pair].discard)(place)
        if not self.pairs[pair]:
            del self.pairs[pair]

    def _append(self, word: tuple[str, ...], frequency: int) -> None:
        first, last = len(self._piece), len(self._piece) + len(word) - 1
        self._starts.append(first)
        self._piece += word
        self._weight += [frequency] * len(word)
        self._before += [-1, *range(first, last)]
        self._after += [*range(first + 1, last + 1), -1]

    def _word(self, place: int) -> list[str]:
        pieces = []
        while place >= 0:
            pieces.append(self._piece[place])
            place = self._after[place]
        return pieces


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
