"""Training of textbook BPE, in Python and in C++ (native/text/textbook_bpe.cpp)."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from chainrule import native
from chainrule.errors import ConfigError
from chainrule.text.training.merges import Pair, Pieces
from chainrule.text.unicode.utf8 import as_texts, batches, to_utf8

END = "</w>"
WORD_OR_SPACE = re.compile(r"\S+|\s")
SPACE = 3  # the kind of white space in pretokenize.hpp
NO_LIMIT = 2**63 - 1


class Learner:
    """The characters of texts, and the merges that can be learned from them."""

    def __init__(self, texts: str | Iterable[str], *, end_mark: bool) -> None:
        self.words = count_words(texts, end_mark=end_mark)
        self.characters = list(dict.fromkeys(piece for word in self.words for piece in word))

    def merges(self, limit: int | None, never: Iterable[str]) -> Iterator[Pair]:
        """At most `limit` merges; none makes a token of `never`."""
        return (pair for pair, _ in islice(merge_steps(Pieces(self.words), never), limit))


class NativeLearner:
    """The same in C++, where tokens are numbers: characters first, then merges."""

    def __init__(self, texts: str | Iterable[str], *, end_mark: bool) -> None:
        self._trainer = native.kernels().TextbookBpeTrainer(white_space(), END.encode() if end_mark else b"")
        for batch, ends in batches(check_mark(text, end_mark) for text in as_texts(texts)):
            self._trainer.add(batch, ends)
        self.characters = [END if code < 0 else chr(code) for code in self._trainer.characters().tolist()]

    def merges(self, limit: int | None, never: Iterable[str]) -> Iterator[Pair]:
        rows = self._trainer.train(NO_LIMIT if limit is None else limit, [to_utf8(name) for name in never])
        tokens = list(self.characters)
        for left, right in rows[:, :2].tolist():
            tokens.append(tokens[left] + tokens[right])
            yield tokens[left], tokens[right]


def merge_steps(pieces: Pieces, never: Iterable[str] = ()) -> Iterator[tuple[Pair, int]]:
    """(pair, count) of each merge, after the merge; the caller stops when it has enough.

    No merge makes a token of `never`: text must not become a special token.
    """
    never = set(never)
    heap = [(-count, pair) for pair, count in pieces.pairs.items()]
    heapq.heapify(heap)
    pieces.changed.clear()
    while heap:
        negative, pair = heapq.heappop(heap)
        if pieces.pairs.get(pair) != -negative or "".join(pair) in never:
            continue  # its count has changed since it was pushed
        pieces.merge(pair, "".join(pair))
        for touched in pieces.changed & pieces.pairs.keys():
            heapq.heappush(heap, (-pieces.pairs[touched], touched))
        pieces.changed.clear()
        yield pair, -negative


def count_words(texts: str | Iterable[str], *, end_mark: bool = False) -> dict[tuple[str, ...], int]:
    """The characters of each distinct word, with its count, in the order of first appearance."""
    counts: Counter[str] = Counter()
    for text in as_texts(texts):
        counts.update(WORD_OR_SPACE.findall(check_mark(text, end_mark)))
    return {tuple(spell(word, end_mark)): count for word, count in counts.items()}


def spell(word: str, end_mark: bool) -> list[str]:
    """The characters of a word, then the end mark; white space gets none."""
    return [*word, END] if end_mark and not word.isspace() else [*word]


def check_mark(text: str, end_mark: bool) -> str:
    """The text, if it does not contain the end mark."""
    if end_mark and END in text:
        raise ConfigError(f"textbook BPE: the text contains the end mark {END!r} (train without end_mark)")
    return text


@cache
def white_space() -> Any:
    """Python's white space (\\s) as a table for the C++ scanner."""
    codes = [code for code in range(0x10000) if chr(code).isspace()]
    return native.kernels().character_classes(np.array([(c, c, SPACE) for c in codes], np.int32))
