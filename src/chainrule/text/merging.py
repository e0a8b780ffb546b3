"""Cutting a word into tokens, by merging pairs or by the longest match, and remembering the ids of words."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

Merges = Mapping[tuple[int, int], tuple[int, int]]  # pair of ids -> (rank of its merge, merged id)


def merge(ids: Sequence[int], merges: Merges) -> list[int]:
    """`training.bpe.merge_word` in n log n: in a text without spaces a word may be long."""
    gone = -1
    row = list(ids)
    before, after = list(range(-1, len(row) - 1)), list(range(1, len(row) + 1))
    heap: list[tuple[int, int, int, int, int]] = []  # rank, place, left, right, merged

    def offer(i: int) -> None:
        if i >= 0 and after[i] < len(row):
            pair = (row[i], row[after[i]])
            if pair in merges:
                rank, merged = merges[pair]
                heapq.heappush(heap, (rank, i, *pair, merged))

    for i in range(len(row)):
        offer(i)
    while heap:
        _, i, left, right, merged = heapq.heappop(heap)
        j = after[i]
        if row[i] != left or j >= len(row) or row[j] != right:
            continue  # one of the two has merged since
        row[i], row[j] = merged, gone
        after[i] = after[j]
        if after[i] < len(row):
            before[after[i]] = i
        offer(before[i])
        offer(i)
    return [id for id in row if id != gone]


def longest_match(word: str, ids: Mapping[str, int], longest: int, prefix: str) -> list[int] | None:
    """The ids of the longest pieces that fit from left to right, at most `longest` characters each; None if none fits.

    A piece inside the word begins with `prefix`.
    """
    found: list[int] = []
    start = 0
    while start < len(word):
        before = prefix if start else ""
        for end in range(min(len(word), start + longest), start, -1):
            id = ids.get(before + word[start:end])
            if id is not None:
                break
        else:
            return None
        found.append(id)
        start = end
    return found


class WordIds(dict[str, list[int]]):
    """The ids of words, computed once; emptied when full. Long words are not kept."""

    LIMIT, LONGEST = 1 << 17, 256

    def __init__(self, ids: Callable[[str], list[int]]) -> None:
        self.ids = ids

    def __missing__(self, word: str) -> list[int]:
        found = self.ids(word)
        if len(word) <= self.LONGEST:
            if len(self) >= self.LIMIT:
                self.clear()
            self[word] = found
        return found
