"""A stand-in for a list of names: short lower-case words of the standard library."""

from __future__ import annotations

from functools import cache

from chainrule.autograd.types import Array
from chainrule.data import load
from chainrule.text import CharTokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def encode(words: list[str]) -> list[Array]:
    """Letters numbered from 1; 0 is the terminal."""
    return [CharTokenizer(LETTERS).encode(word) + 1 for word in words]


@cache
def short_words() -> list[Array]:
    """4,000 words of at most 10 letters, in an order without meaning."""
    lines = load("identifiers").text.split()
    return encode([w for w in lines if w.isascii() and w.isalpha() and w.islower() and len(w) <= 10][:4000])
