"""Training of WordPiece, in Python and in C++ (native/text/wordpiece_train.cpp)."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from chainrule import native
from chainrule.text.splitting.normalize import BertRules
from chainrule.text.training.counting import count_words
from chainrule.text.training.merges import Pair, Pieces
from chainrule.text.unicode.utf8 import as_texts, batches, from_utf8, to_utf8

PREFIX = "##"


class Learner:
    """The characters of texts, sorted, and the tokens that merging makes of them."""

    def __init__(self, texts: str | Iterable[str], rules: BertRules) -> None:
        words: Counter[str] = Counter()
        for text in as_texts(texts):
            words.update(rules.split(text))
        self.pieces = Pieces({tuple(spell(word)): count for word, count in sorted(words.items())})
        self.characters = sorted(self.pieces.count)

    def tokens(self, limit: int, min_count: int | None) -> Iterator[str]:
        """At most `limit` different tokens (see native/text/merger.hpp)."""
        return islice(_merge_steps(self.pieces, min_count), limit)


class NativeLearner:
    """The same in C++."""

    def __init__(self, texts: str | Iterable[str], rules: BertRules, workers: int = 1) -> None:
        counting = _Counting(rules)
        self._trainer = counting.trainer
        if not count_words(self._trainer, partial(_Counting, rules), map(to_utf8, as_texts(texts)), workers):
            for batch, ends in batches(texts):
                counting.add(batch, ends)
        self.characters = list(map(from_utf8, self._trainer.alphabet()))

    def tokens(self, limit: int, min_count: int | None) -> Iterator[str]:
        return map(from_utf8, self._trainer.train(limit, min_count or 0))


class _Counting:
    """Counts the words of texts, whose characters it looks up first."""

    def __init__(self, rules: BertRules) -> None:
        self.rules = rules
        self.trainer = native.kernels().WordPieceTrainer(rules.native_table(b""), PREFIX.encode())

    def add(self, texts: bytes, ends: Any) -> None:
        self.rules.native_table(texts)
        self.trainer.add(texts, ends)

    def counts(self) -> Any:
        return self.trainer.counts()


def spell(word: str) -> list[str]:
    """
    >>> spell("low")
    ['l', '##o', '##w']
    """
    return [word[0], *(PREFIX + character for character in word[1:])]


def score(pieces: Pieces, pair: Pair) -> float:
    """count(ab) / (count(a) count(b)): how much more often a and b are adjacent than by chance"""
    a, b = pair
    return pieces.pairs[pair] / float(pieces.count[a] * pieces.count[b])


def _merge_steps(pieces: Pieces, min_count: int | None) -> Iterator[str]:
    """The token that each merge adds; a tie goes to the more frequent pair, then to the alphabetically first.

    A merge changes the counts of its two pieces, hence the scores of all pairs with them. These pairs are pushed once
    more, and an entry that disagrees with the counts is skipped when popped.
    """
    holding: defaultdict[str, set[Pair]] = defaultdict(set)  # piece -> pairs with it
    most = max(pieces.pairs.values(), default=1)
    falling = [1 << power for power in range(most.bit_length() - 1, 0, -1)]  # of 11: 8, 4, 2
    for least in falling if min_count is None else [min_count]:
        heap: list[tuple[float, int, Pair]] = []
        outdated = set(pieces.pairs)
        while True:
            for pair in pieces.changed:
                for piece in pair:
                    (holding[piece].add if pair in pieces.pairs else holding[piece].discard)(pair)
            outdated |= pieces.changed
            pieces.changed.clear()
            for pair in outdated:
                if pieces.pairs.get(pair, 0) >= least:
                    heapq.heappush(heap, _entry(pieces, pair))
            while heap and (heap[0][2] not in pieces.pairs or heap[0] != _entry(pieces, heap[0][2])):
                heapq.heappop(heap)
            if not heap:
                break
            a, b = heapq.heappop(heap)[2]
            merged = a + b.removeprefix(PREFIX)
            pieces.merge((a, b), merged)
            outdated = holding[a] | holding[b] | holding[merged]
            yield merged


def _entry(pieces: Pieces, pair: Pair) -> tuple[float, int, Pair]:
    return -score(pieces, pair), -pieces.pairs[pair], pair
