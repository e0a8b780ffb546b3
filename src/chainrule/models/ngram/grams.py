"""How often each n-gram occurs: sparse tables, built by counting integers.

A context of k tokens gets a number, and a gram is the pair (number of its context, token that follows), written as one
integer. The context one token longer is the pair (number of the shorter context, token before it). So an integer never
exceeds contexts × vocabulary, whatever the order, and going to a shorter context is a division.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import DataError
from chainrule.types import Array


class Terminals(NamedTuple):
    """What stands before the first token of a document and after its last.

    One token for both (0, 0); a pair such as (0, V - 1); or none, for a text without documents: `start` is then V, a
    number outside the vocabulary that means "nothing yet", and `end` is None.
    """

    start: int = 0
    end: int | None = 0


@dataclass(frozen=True)
class Level:
    """The grams whose contexts have one length. Keys are sorted; a context's number is its place among them."""

    width: int  # tokens, and one more for "nothing yet"
    contexts: Array  # (c,) number of the shorter context * width + the token before it
    grams: Array  # (g,) number of the context * width + the token that follows
    counts: Array  # (g,)

    @cached_property
    def owners(self) -> Array:
        """(g,) the number of each gram's context"""
        return self.grams // self.width

    @cached_property
    def totals(self) -> Array:
        """(c,) how often each context occurs"""
        return self.sum_by_context(self.counts)

    def sum_by_context(self, values: Array) -> Array:
        """values (g,) -> (c,)"""
        return np.bincount(self.owners, values, minlength=len(self.contexts))

    def shorter(self, below: Level) -> Array:
        """(g,) the place among `below.grams` of each gram without its first token"""
        keys = self.contexts[self.owners] // self.width * self.width + self.grams % self.width
        return np.searchsorted(below.grams, keys)


def count(documents: Sequence[npt.ArrayLike], order: int, vocab_size: int, ends: Terminals) -> list[Level]:
    """The grams of 1 .. `order` tokens; no context reaches back into the document before."""
    tokens, targets, places = _flatten(documents, vocab_size, ends)
    width = vocab_size + 1
    numbers = np.zeros(len(targets), np.int64)  # of the context of each target, so far of length 0
    contexts = np.zeros(1, np.int64)
    levels = []
    for length in range(order):
        if length:
            before = np.roll(tokens, length - 1)
            before[places < length - 1] = ends.start
            contexts, numbers = _rank(numbers * width + before, len(contexts) * width)
        grams, counts = _tally(numbers * width + targets, len(contexts) * width)
        levels.append(Level(width, contexts, grams, counts))
    return levels


def listed(levels: list[Level]) -> tuple[Array, Array, Array]:
    """Each different gram of the longest kind: contexts (g, n - 1), tokens that follow (g,), counts (g,)."""
    top = levels[-1]
    contexts = np.empty((len(top.grams), len(levels) - 1), np.int64)
    number = top.owners
    for column, level in enumerate(reversed(levels[1:])):  # the longest context has the first token
        key = level.contexts[number]
        contexts[:, column] = key % level.width
        number = key // level.width
    return contexts, top.grams % top.width, top.counts


def find(keys: Array, wanted: Array) -> Array:
    """The place of each wanted number among the sorted keys, -1 if it is not there."""
    if not len(keys):
        return np.full(wanted.shape, -1)
    places = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)


def _flatten(
    documents: Sequence[npt.ArrayLike], vocab_size: int, ends: Terminals
) -> tuple[Array, Array, Array]:
    """All transitions in a row: the token before (m,), the token after (m,), its place in its document (m,)."""
    rows = [_row(i, document) for i, document in enumerate(documents)]
    closed = ends.end is not None
    lengths = np.array([len(row) + closed for row in rows], np.int64)
    if not lengths.sum():
        raise DataError(f"n-gram: {len(rows)} documents without a token (must have at least one)")
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    targets = np.full(len(places), -1 if ends.end is None else ends.end)
    inside = places < np.repeat(lengths - closed, lengths)
    targets[inside] = np.concatenate(rows)
    _check(targets, inside, lengths, vocab_size, ends)
    tokens = np.roll(targets, 1)
    tokens[places == 0] = ends.start
    return tokens, targets, places


def _row(number: int, document: npt.ArrayLike) -> Array:
    row = np.asarray(document)
    if row.size == 0:
        return np.empty(0, np.int32)
    if row.ndim != 1 or row.dtype.kind not in "iu":
        raise DataError(
            f"n-gram: document {number} is {row.dtype} {row.shape} (must be integers of shape (n,))"
        )
    return row


def _check(targets: Array, inside: Array, lengths: Array, vocab_size: int, ends: Terminals) -> None:
    wrong = (targets < 0) | (targets >= vocab_size) | (targets == ends.start) | (targets == ends.end)
    wrong &= inside
    if wrong.any():
        place = wrong.argmax()
        document = np.searchsorted(np.cumsum(lengths), place, side="right")
        rule = f"must be from 0 to {vocab_size - 1} and no terminal"
        raise DataError(f"n-gram: document {document} has token {targets[place]} ({rule})")


def _rank(keys: Array, bound: int) -> tuple[Array, Array]:
    """The different keys, sorted, and the place of each key among them."""
    if bound > 4 * len(keys):  # a table of all possible keys would be mostly empty
        return np.unique(keys, return_inverse=True)
    seen = np.zeros(bound, bool)
    seen[keys] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]


def _tally(keys: Array, bound: int) -> tuple[Array, Array]:
    """The different keys, sorted, and how often each occurs."""
    if bound > 4 * len(keys):
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys, minlength=bound)
    different = np.flatnonzero(counts)
    return different, counts[different]
