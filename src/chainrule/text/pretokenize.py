"""Splitting text into the words within which BPE merges: the patterns of GPT-2, GPT-4 and Llama 3.

The regular expressions below are the definition. C++ scanners do the same on UTF-8. `split_reference` runs the
expressions in Python's `re`, which lacks \\p{L}, over a reduced alphabet. Letters, numbers and white space come from
one fixed version of Unicode (`unicode/ranges.py`), so the words of a text never change with the interpreter.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import native
from chainrule.errors import ConfigError
from chainrule.text.unicode import ranges as unicode_ranges

_WORDS = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"[\s]+(?![^\s])|[\s]+"
PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|" + _SPACES,
    # tiktoken's cl100k_base takes white space at the end of a text as one word; Llama 3 splits it after a new line.
    "gpt4": _WORDS + r"|[\s]+\z|[\s]*[\r\n]+|" + _SPACES,
    "llama3": _WORDS + r"|[\s]*[\r\n]+|" + _SPACES,
}

# The reduced alphabet: ASCII stays, and so does ſ (equal to s when case is ignored); every other character becomes the
# representative of its class.
_STANDS_FOR = {"letter": "é", "number": "²", "space": "\x85", "other": "§"}
_MEMBERS = {r"\p{L}": "a-zA-Zéſ", r"\p{N}": "0-9²", r"\s": r"\t-\r \x85", r"\z": r"\Z"}


def check_pattern(name: str) -> int:
    """The index of the pattern in PATTERNS; an error lists them."""
    if name not in PATTERNS:
        raise ConfigError(f"pattern: got {name!r} (must be one of {', '.join(PATTERNS)})")
    return list(PATTERNS).index(name)


def split(data: bytes, pattern: str) -> list[bytes]:
    """Split UTF-8 text into words, which joined give the text. An invalid byte is a character of its own."""
    index = check_pattern(pattern)
    if not native.available():
        return split_reference(data, pattern)
    ends = native.kernels().split_words(character_classes(), index, data).tolist()
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def split_reference(data: bytes, pattern: str) -> list[bytes]:
    """The same with Python's `re`."""
    text = data.decode("utf-8", "surrogateescape")
    reduced = _reduce(text)
    spans = (match.span() for match in _expression(pattern).finditer(reduced))
    return [text[begin:end].encode("utf-8", "surrogateescape") for begin, end in spans]


@cache
def character_classes() -> Any:
    """The table of character classes for the C++ scanners."""
    return native.kernels().character_classes(_ranges())


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    expression = PATTERNS[pattern]
    for name, members in _MEMBERS.items():
        expression = expression.replace(name, members)
    return re.compile(expression)


def _reduce(text: str) -> str:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return _reduced_alphabet()[codes].tobytes().decode("utf-32-le")


@cache
def _reduced_alphabet() -> npt.NDArray[np.uint32]:
    table = np.full(0x110000, ord(_STANDS_FOR["other"]), "<u4")
    for first, last, kind in _ranges():
        table[first : last + 1] = ord(_STANDS_FOR[("other", "letter", "number", "space")[kind]])
    table[:128] = np.arange(128)
    table[ord("ſ")] = ord("ſ")
    return table


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
