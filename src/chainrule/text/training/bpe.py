"""Byte-pair encoding in Python: training and merging. The reference and fallback for native/text/bpe_*.cpp."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from chainrule.text.unicode.byte_alphabet import BYTES_IN_ORDER

Pair = tuple[int, int]


def merge_word(ids: Sequence[int], merges: Mapping[Pair, tuple[int, int]]) -> list[int]:
    """Merge the adjacent pair of lowest priority, the leftmost of equals, until no pair merges.

    `merges` gives the priority of a pair and the token it becomes.
    """
    ids = list(ids)
    while True:
        found = [(*merges[pair], i) for i, pair in enumerate(pairwise(ids)) if pair in merges]
        if not found:
            return ids
        _, merged, i = min(found, key=lambda item: (item[0], item[2]))
        ids[i : i + 2] = [merged]


def train(words: Mapping[bytes, int], limit: int, least: int) -> list[tuple[int, int, int, int]]:
    """Up to `limit` merges (left, right, merged, priority), learned from words and their counts.

    Each merge takes the most frequent pair, if it occurs at least `least` times; a tie goes to the smaller pair of ids.
    No two merges make the same bytes: a merge of ab + c would have used up every place where a + bc could merge.
    """
    ids = {byte: id for id, byte in enumerate(BYTES_IN_ORDER)}
    rows = [([ids[byte] for byte in word], count) for word, count in words.items()]
    merges: list[tuple[int, int, int, int]] = []
    while len(merges) < limit:
        counts: Counter[Pair] = Counter()
        for row, count in rows:
            for pair in pairwise(row):
                counts[pair] += count
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < least:
            break
        merged = 256 + len(merges)
        rows = [(merge_word(row, {best: (0, merged)}), count) for row, count in rows]
        merges.append((*best, merged, len(merges)))
    return merges


def rank_merges(tokens: Mapping[bytes, int]) -> list[tuple[int, int, int, int]]:
    """Merges as tiktoken derives them: two tokens merge if their joined bytes are a token, whose id is the priority."""
    lengths = sorted({len(token) for token in tokens})
    return [
        (tokens[token[:cut]], tokens[token[cut:]], id, id)
        for token, id in sorted(tokens.items(), key=lambda item: item[1])
        for cut in lengths
        if cut < len(token) and token[:cut] in tokens and token[cut:] in tokens
    ]
