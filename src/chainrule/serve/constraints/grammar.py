"""A grammar as stacks of symbols: what may follow, byte by byte.

A stack is None, when nothing more may follow, or a `Node`: a symbol and the stack below it. `symbol.after(byte, rest)`
gives the stacks that are possible after a byte; an optional symbol gives those of the stack below as well. A text may
be read in several ways at once, so a state is a set of stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias
from weakref import WeakValueDictionary

from chainrule.errors import DataError

SPACES = 12  # white space in a row at most, or a model could write it forever
DIGITS = 15  # of each part of a number at most, for the same reason
LEVELS = 64  # lists and objects inside each other at most
WAYS = 64  # stacks of a state at most: an ambiguous grammar could double them with each byte
HEX = frozenset(b"0123456789abcdefABCDEF")
DECIMAL = frozenset(b"0123456789")


class Symbol(Protocol):
    """A part of a text that is still to come."""

    def after(self, byte: int, rest: Stack) -> Iterable[Stack]:
        """The stacks that are possible after this byte"""


class Node:
    """A symbol above a stack. Equal stacks are one object, so that a deep one is compared as fast as a shallow one."""

    __slots__ = ("__weakref__", "below", "depth", "symbol")

    def __init__(self, symbol: Symbol, below: Stack) -> None:
        self.symbol = symbol
        self.below = below
        self.depth = 1 + depth(below)


Stack: TypeAlias = Node | None
State: TypeAlias = frozenset[Stack]
_NODES: WeakValueDictionary[tuple[Symbol, Stack], Node] = WeakValueDictionary()


def depth(stack: Stack) -> int:
    """Symbols of a stack"""
    return 0 if stack is None else stack.depth


def push(rest: Stack, *symbols: Symbol) -> Stack:
    """The symbols above a stack, the first on top"""
    for symbol in reversed(symbols):
        if (found := _NODES.get((symbol, rest))) is None:
            found = _NODES.setdefault((symbol, rest), Node(symbol, rest))
        rest = found
    return rest


def begin(symbol: Symbol) -> State:
    """Nothing has been read yet"""
    return frozenset({push(None, symbol)})


@lru_cache(maxsize=1 << 16)
def after(stack: Stack, byte: int) -> State:
    """What is possible after one more byte; empty if it cannot follow"""
    return frozenset() if stack is None else frozenset(stack.symbol.after(byte, stack.below))


def advance(state: State, byte: int) -> State:
    found = frozenset(stack for old in state for stack in after(old, byte))
    if len(found) > WAYS:
        raise DataError(f"grammar: more than {WAYS} ways to read a text (make its choices differ)")
    return found


@dataclass(frozen=True)
class Literal:
    """These bytes, of which there is one at least."""

    text: bytes

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        if byte == self.text[0]:
            yield push(rest, Literal(self.text[1:])) if self.text[1:] else rest


@dataclass(frozen=True)
class Opening:
    """The byte that begins a list or an object, unless it would be too deep: two symbols stay on the stack for each."""

    byte: int

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        if byte == self.byte and depth(rest) <= 2 * LEVELS:
            yield rest


@dataclass(frozen=True)
class Words:
    """One of several texts, none of them empty, each with what follows it.

    It is one way to read a text, however many of them begin alike.
    """

    options: tuple[tuple[bytes, tuple[Symbol, ...]], ...]

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        left = tuple((text[1:], more) for text, more in self.options if text[0] == byte)
        yield from (push(rest, *more) for text, more in left if not text)
        if left := tuple(option for option in left if option[0]):
            yield push(rest, Words(left))


@dataclass(frozen=True)
class OneOf:
    """One of these bytes."""

    allowed: frozenset[int]

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        if byte in self.allowed:
            yield rest


@dataclass(frozen=True)
class Several:
    """At most so many of these bytes."""

    allowed: frozenset[int]
    most: int

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        if byte in self.allowed:
            yield push(rest, Several(self.allowed, self.most - 1)) if self.most > 1 else rest
        yield from after(rest, byte)


@dataclass(frozen=True)
class Choice:
    """One of several sequences of symbols; an empty one makes it optional."""

    options: tuple[tuple[Symbol, ...], ...]

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        for option in self.options:
            yield from after(push(rest, *option), byte)


SPACE = Several(frozenset(b" \n\t"), SPACES)


def optional(*symbols: Symbol) -> Choice:
    return Choice((symbols, ()))


# -- strings ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StringRest:
    """Characters of a string up to its quote, as UTF-8; escapes spell no half of a surrogate pair."""

    def after(self, byte: int, rest: Stack) -> Iterator[Stack]:
        if byte == ord('"'):
            yield rest
        elif byte == ord("\\"):
            yield push(rest, ESCAPE, self)
        elif 0x20 <= byte < 0x80:
            yield push(rest, self)
        elif continued := CONTINUED.get(byte):
            yield push(rest, *continued, self)


def _bytes(low: int, high: int) -> OneOf:
    return OneOf(frozenset(range(low, high + 1)))


_ANY = _bytes(0x80, 0xBF)
# First byte of a character -> the bytes that must follow (The Unicode Standard, table 3-7).
CONTINUED: dict[int, tuple[OneOf, ...]] = {
    **dict.fromkeys(range(194, 224), (_ANY,)),
    **dict.fromkeys(range(225, 240), (_ANY, _ANY)),
    0xE0: (_bytes(0xA0, 0xBF), _ANY),
    0xED: (_bytes(0x80, 0x9F), _ANY),
    **dict.fromkeys(range(241, 244), (_ANY, _ANY, _ANY)),
    0xF0: (_bytes(0x90, 0xBF), _ANY, _ANY),
    0xF4: (_bytes(0x80, 0x8F), _ANY, _ANY),
}
_HEX = OneOf(HEX)
ESCAPE = Choice(
    (
        (OneOf(frozenset(b'"\\/bfnrt')),),
        (Literal(b"u"), OneOf(HEX - frozenset(b"dD")), _HEX, _HEX, _HEX),
        (Literal(b"u"), OneOf(frozenset(b"dD")), OneOf(frozenset(b"01234567")), _HEX, _HEX),
    )
)
STRING_REST = StringRest()
STRING: tuple[Symbol, ...] = (Literal(b'"'), STRING_REST)

# -- numbers ------------------------------------------------------------------------------------------------

_DIGIT, _DIGITS = OneOf(DECIMAL), Several(DECIMAL, DIGITS - 1)
INTEGER: tuple[Symbol, ...] = (
    optional(Literal(b"-")),
    Choice(((Literal(b"0"),), (OneOf(DECIMAL - frozenset(b"0")), _DIGITS))),
)
NUMBER: tuple[Symbol, ...] = (
    *INTEGER,
    optional(Literal(b"."), _DIGIT, _DIGITS),
    optional(OneOf(frozenset(b"eE")), optional(OneOf(frozenset(b"+-"))), _DIGIT, optional(_DIGIT)),
)
