"""Splitting text into the words within which BPE merges, by one of the `patterns` or any regular expressions.

For the patterns of GPT-2, GPT-4 and Llama 3 there are C++ scanners on UTF-8; the expressions are the definition.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.text.splitting.patterns import NATIVE, PATTERNS, Pattern, check_pattern, steps_of
from chainrule.text.unicode import expressions
from chainrule.text.unicode import ranges as unicode_ranges

_SCANNERS = {PATTERNS[name][0]: number for number, name in enumerate(NATIVE)}


def native_steps(pattern: Pattern) -> tuple[tuple[str, ...], int | None]:
    """The expressions of a pattern before the last, and the number of the C++ scanner for the last.

    Without a scanner for it the number is None.
    """
    steps = steps_of(pattern)
    scanner = _SCANNERS.get(steps[-1]) if steps and native.available() else None
    return steps[:-1], scanner


def split(data: bytes, pattern: Pattern) -> list[bytes]:
    """Split UTF-8 text into words, which joined give the text. An invalid byte is a character of its own."""
    pattern = check_pattern(pattern)
    before, scanner = native_steps(pattern)
    if before or scanner is None:
        return split_reference(data, pattern)
    ends = native.kernels().split_words(character_classes(), scanner, data).tolist()
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def split_reference(data: bytes, pattern: Pattern) -> list[bytes]:
    """The same by the expressions."""
    words = split_text(data.decode("utf-8", "surrogateescape"), steps_of(pattern))
    return [word.encode("utf-8", "surrogateescape") for word in words]


def split_text(text: str, steps: tuple[str, ...]) -> list[str]:
    """Words of a text by expressions that are applied in turn."""
    pieces = [text] if text else []
    for expression in steps:
        pieces = [part for piece in pieces for part in isolate(piece, expression)]
    return pieces


def isolate(text: str, expression: str) -> list[str]:
    """The matches of an expression and what is between them."""
    if expressions.is_known(expression):  # matches no empty text
        return [part for part in expressions.splitter(expression).split(text) if part]
    parts, end = [], 0
    for begin, stop in expressions.spans(expression)(text):
        parts += [text[end:begin], text[begin:stop]]
        end = stop
    return [part for part in (*parts, text[end:]) if part]


@cache
def character_classes() -> Any:
    """The table of character classes for the C++ scanners."""
    return native.kernels().character_classes(_ranges())


@cache
def _ranges() -> npt.NDArray[np.int32]:
    """Rows of (first, last, kind) of code points; kinds as in pretokenize.hpp, where 0 is everything else."""
    lists = (unicode_ranges.LETTERS, unicode_ranges.NUMBERS, unicode_ranges.WHITE_SPACE)
    rows = [
        (int(word.partition("-")[0], 16), int(word.rpartition("-")[2], 16), kind)
        for kind, text in enumerate(lists, start=1)
        for word in text.split()
    ]
    return np.array(rows, np.int32)
