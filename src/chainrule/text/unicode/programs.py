r"""Known expressions as programs of the C++ extension, which matches them over UTF-8 (native/text/expressions.hpp).

The dialect is that of `patterns`: sets, \p, \s, \z, $, alternatives, (?:), (?i:), (?!set), and ?, *, +, {m,n} after a
set; a group may be optional.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.text.unicode.expressions import ranges_of

SPAN, EITHER, JUMP, NOT_AHEAD, TEXT_END, LINE_END, MATCH = range(7)  # as in expressions.hpp
ENDLESS = 2**31 - 1
INVALID = 0xDC80  # how a byte that is not UTF-8 is decoded; the extension gives it kind 0
ESCAPES = {"r": "\r", "n": "\n", "t": "\t"}
ALIKE = {"s": "ſ", "k": "\u212a"}  # letters beside the usual two that are equal without regard to case
REPEATS = {"?": (0, 1), "*": (0, ENDLESS), "+": (1, ENDLESS)}


@dataclass(frozen=True)
class Set:
    """Characters in one of the ranges, or in none of them."""

    ranges: frozenset[tuple[int, int]]
    negated: bool = False

    def holds(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of the code points are in it."""
        firsts = np.sort([first for first, _ in self.ranges])
        lasts = np.sort([last for _, last in self.ranges])
        inside = np.searchsorted(firsts, codes, "right") > np.searchsorted(lasts, codes, "left")
        return np.asarray(inside != self.negated)


@dataclass(frozen=True)
class Span:
    """From `least` to `most` characters of a set."""

    set: Set
    least: int = 1
    most: int = 1


@dataclass(frozen=True)
class Group:
    """One of several sequences, or nothing."""

    alternatives: list[list[Any]]
    optional: bool = False


@dataclass(frozen=True)
class Assertion:
    """What must be true of the text ahead."""

    kind: int
    set: Set | None = None


class Parser:
    """Reads an expression from left to right."""

    def __init__(self, expression: str) -> None:
        self.expression, self.place = expression, 0
        self.any_case = False

    def parse(self) -> list[list[Any]]:
        """The alternatives of the expression, or of the group that began before."""
        found: list[list[Any]] = [[]]
        while self.place < len(self.expression) and not self.take(")"):
            if self.take("|"):
                found.append([])
            else:
                found[-1].append(self.item())
        return found

    def take(self, text: str) -> bool:
        """True if the text is next; then it is read."""
        if not self.expression.startswith(text, self.place):
            return False
        self.place += len(text)
        return True

    def item(self) -> Any:
        if self.take("$"):
            return Assertion(LINE_END)
        if self.take(r"\z"):
            return Assertion(TEXT_END)
        if self.take("(?!"):
            ((ahead,),) = self.parse()
            return Assertion(NOT_AHEAD, ahead.set)
        for opening in ("(?:", "(?i:"):
            if self.take(opening):
                before, self.any_case = self.any_case, self.any_case or opening == "(?i:"
                alternatives, self.any_case = self.parse(), before
                return Group(alternatives, optional=self.take("?"))
        found = self.set() if self.take("[") else self.member()
        return Span(found, *self.repeats())

    def repeats(self) -> tuple[int, int]:
        for mark, limits in REPEATS.items():
            if self.take(mark):
                return limits
        if not self.take("{"):
            return 1, 1
        end = self.expression.index("}", self.place)
        least, _, most = self.expression[self.place : end].partition(",")
        self.place = end + 1
        return int(least), int(most)

    def set(self) -> Set:
        negated, ranges = self.take("^"), set[tuple[int, int]]()
        while not self.take("]"):
            member = self.member()
            if member.negated:
                raise FormatError(f"expression {self.expression[:60]!r}: a negated class in a set")
            if self.take("-"):
                ((first, _),), ((last, _),) = member.ranges, self.member().ranges
                ranges.add((first, last))
            else:
                ranges |= member.ranges
        return Set(frozenset(ranges), negated)

    def member(self) -> Set:
        """A character, or a class of characters."""
        letter = self.expression[self.place]
        self.place += 1
        if letter != "\\":
            return self.alone(letter)
        letter = self.expression[self.place]
        self.place += 1
        if letter in "pP":
            end = self.expression.index("}", self.place)
            name, self.place = self.expression[self.place + 1 : end], end + 1
            return Set(frozenset(ranges_of(name)), letter == "P")
        if letter in "sS":
            return Set(frozenset(ranges_of("space")), letter == "S")
        return self.alone(ESCAPES.get(letter, letter))

    def alone(self, letter: str) -> Set:
        letters = {letter}
        if self.any_case:
            letters |= {letter.lower(), letter.upper(), ALIKE.get(letter.lower(), letter)}
        return Set(frozenset((ord(each), ord(each)) for each in letters))


@dataclass
class Program:
    """Expressions that are applied in turn, as the arrays that the extension takes."""

    sets: list[Set] = field(default_factory=list)
    code: list[list[Any]] = field(default_factory=list)
    alternatives: list[tuple[int, int]] = field(default_factory=list)
    begins: list[set[Set]] = field(default_factory=list)

    def add(self, expression: str, step: int) -> None:
        for sequence in Parser(expression).parse():
            self.alternatives.append((step, len(self.code)))
            self.begins.append(_begins([*sequence, None]))
            self._write(sequence)
            self.code.append([MATCH, 0, 0, 0, 0])

    def _write(self, sequence: Sequence[Any]) -> None:
        for item in sequence:
            if isinstance(item, Span):
                self.code.append([SPAN, self._number(item.set), item.least, item.most, 0])
            elif isinstance(item, Assertion):
                self.code.append([item.kind, 0 if item.set is None else self._number(item.set), 0, 0, 0])
            else:
                self._write_group(item)

    def _write_group(self, group: Group) -> None:
        jumps = []
        ways = [*group.alternatives, []] if group.optional else group.alternatives
        for sequence in ways[:-1]:
            self.code.append(choice := [EITHER, 0, 0, 0, 0])
            self._write(sequence)
            self.code.append(jump := [JUMP, 0, 0, 0, 0])
            jumps.append(jump)
            choice[1] = len(self.code)
        self._write(ways[-1])
        for jump in jumps:
            jump[1] = len(self.code)

    def _number(self, chosen: Set) -> int:
        if chosen not in self.sets:
            self.sets.append(chosen)
        return self.sets.index(chosen)

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Ranges of (first, last, kind), sets of each kind, instructions, alternatives, kinds that each begins with."""
        edges = {0, INVALID} | {edge for each in self.sets for a, b in each.ranges for edge in (a, b + 1)}
        firsts = np.array(sorted(edge for edge in edges if edge < 0x110000))
        inside = np.stack([each.holds(firsts) for each in self.sets])  # (sets, edges)
        bits = (inside.astype(np.uint64) << np.arange(len(self.sets), dtype=np.uint64)[:, None]).sum(axis=0)
        unlike, kinds = np.unique(bits, return_inverse=True)
        own = kinds[np.searchsorted(firsts, INVALID)]
        kinds = np.where(kinds == own, 0, np.where(kinds == 0, own, kinds))
        unlike[[0, own]] = unlike[[own, 0]]
        if len(self.sets) > 64 or len(unlike) > 256:
            raise FormatError(f"expressions: {len(self.sets)} sets, {len(unlike)} kinds (at most 64 and 256)")
        lasts = np.append(firsts[1:], 0x110000) - 1
        begins = np.zeros((len(self.begins), 256), np.uint8)
        sets = np.zeros(256, np.uint64)
        sets[: len(unlike)] = unlike
        for row, some in zip(begins, self.begins, strict=True):
            for each in some:
                row |= (sets >> np.uint64(self.sets.index(each)) & np.uint64(1)).astype(np.uint8)
        ranges = np.stack([firsts, lasts, kinds], axis=1).astype(np.int32)
        code = np.array([self._kept(at, row) for at, row in enumerate(self.code)], np.int32)
        return ranges, sets, code, np.array(self.alternatives, np.int32), begins

    def _kept(self, at: int, row: list[int]) -> list[int]:
        """A span gives nothing back if what follows cannot fail, or cannot begin with one of its characters."""
        if row[0] != SPAN:
            return row
        after = self.code[at + 1]
        apart = after[0] == SPAN and after[2] > 0 and self._apart(row[1], after[1])
        return [*row[:4], int(apart or self._passes(at + 1))]

    def _passes(self, at: int) -> bool:
        row = self.code[at]
        if row[0] == SPAN:
            return row[2] == 0 and self._passes(at + 1)
        return row[0] == MATCH or (row[0] in (EITHER, JUMP) and self._passes(row[1]))

    def _apart(self, a: int, b: int) -> bool:
        one, two = self.sets[a], self.sets[b]
        edges = {edge for each in (one, two) for a, b in each.ranges for edge in (a, b + 1)} | {0}
        codes = np.array(sorted(edges))
        return not (one.holds(codes) & two.holds(codes)).any()


def _begins(items: Sequence[Any]) -> set[Set]:
    """The sets of which the first character of a sequence may be."""
    found: set[Set] = set()
    for item in items:
        if isinstance(item, Span):
            found.add(item.set)
            if item.least:
                return found
        elif isinstance(item, Group):
            for each in item.alternatives:
                found |= _begins(each)
            if not item.optional:
                return found
        elif item is None:
            raise FormatError("expression: matches no characters (must match at least one)")
    return found


def compiled(steps: Sequence[str]) -> tuple[npt.NDArray[Any], ...]:
    """Expressions that are applied in turn -> the arguments of the extension's `expression_classes`"""
    program = Program()
    for step, expression in enumerate(steps):
        program.add(expression, step)
    return program.arrays()
