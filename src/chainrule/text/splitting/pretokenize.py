"""Splitting text into the words within which BPE merges, by one of the `patterns` or any regular expressions.

The C++ extension runs all known expressions on UTF-8, those of GPT-2, GPT-4 and Llama 3 by scanners of their own; the
expressions are the definition.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.text.splitting.patterns import NATIVE, PATTERNS, Pattern, check_pattern, steps_of
from chainrule.text.unicode import expressions, programs

_SCANNERS = {PATTERNS[name][0]: number for number, name in enumerate(NATIVE)}


class Splitter(NamedTuple):
    """How the C++ extension splits: a table of character classes, and what reads them."""

    classes: Any
    pattern: int


def native_steps(pattern: Pattern) -> tuple[tuple[str, ...], Splitter | None]:
    """The expressions of a pattern that the C++ extension does not know, and what splits by those after them.

    It is None if the last is not known.
    """
    steps = steps_of(pattern)
    last = next((i for i, step in enumerate(reversed(steps)) if not expressions.is_known(step)), len(steps))
    known = steps[len(steps) - last :]
    return steps[: len(steps) - last], _splitter(known) if known and native.available() else None


@cache
def _splitter(steps: tuple[str, ...]) -> Splitter:
    if len(steps) == 1 and steps[0] in _SCANNERS:
        return Splitter(character_classes(), _SCANNERS[steps[0]])
    return Splitter(native.kernels().expression_classes(*programs.compiled(steps)), len(NATIVE))


def split(data: bytes, pattern: Pattern) -> list[bytes]:
    """Split UTF-8 text into words, which joined give the text. An invalid byte is a character of its own."""
    pattern = check_pattern(pattern)
    before, splitter = native_steps(pattern)
    if before or splitter is None:
        return split_reference(data, pattern)
    ends = native.kernels().split_words(*splitter, data).tolist()
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
    kinds = enumerate(("L", "N", "space"), start=1)
    return np.array([(*span, kind) for kind, name in kinds for span in expressions.ranges_of(name)], np.int32)
