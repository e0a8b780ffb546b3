"""Words in pieces, with counts that each merge updates: shared by the training of textbook BPE and WordPiece."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

Pair = tuple[str, str]


class Pieces:
    """Distinct words in pieces, with counts of pieces and of adjacent pairs, weighted by the count of each word.

    The pieces of all words are one row of places. Each place knows its neighbors in the word, and each pair the places
    where it begins. A merge visits only these places, so the time of training is proportional to the number of
    changes, even if the text is one long word.
    """

    def __init__(self, words: Mapping[tuple[str, ...], int]) -> None:
        self.frequency = list(words.values())
        self.count: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        self.changed: set[Pair] = set()  # pairs whose count changed since the caller cleared it
        self._where: defaultdict[Pair, set[int]] = defaultdict(set)
        self._starts: list[int] = []
        self._piece: list[str] = []
        self._weight: list[int] = []
        self._before: list[int] = []  # the place of the piece before, or -1
        self._after: list[int] = []
        for word, frequency in words.items():
            first, last = len(self._piece), len(self._piece) + len(word) - 1
            self._starts.append(first)
            self._piece += word
            self._weight += [frequency] * len(word)
            self._before += [-1, *range(first, last)]
            self._after += [*range(first + 1, last + 1), -1]
        for place, piece in enumerate(self._piece):
            self.count[piece] += self._weight[place]
            self._count_pair(place, +1)

    @property
    def words(self) -> list[list[str]]:
        """The words in their present pieces."""
        return [self._word(start) for start in self._starts]

    def merge(self, pair: Pair, merged: str) -> None:
        """Replace `pair` by `merged` everywhere, from left to right."""
        where = self._where[pair]
        for place in sorted(where):
            if place in where:  # in "aaa" merging the first pair removes the second
                self._join(place, merged)

    def _join(self, place: int, merged: str) -> None:
        """Join the piece at `place` with the one after it."""
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
        """Add (+1) or remove (-1) the pair that begins at `place`, if there is one."""
        if place < 0 or self._after[place] < 0:
            return
        pair = self._piece[place], self._piece[self._after[place]]
        self.pairs[pair] += sign * self._weight[place]
        self.changed.add(pair)
        (self._where[pair].add if sign > 0 else self._where[pair].discard)(place)
        if not self.pairs[pair]:
            del self.pairs[pair]

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
