"""SentencePiece's `precompiled_charsmap`: strings and what replaces them, the longest that fits at each place.

    the size of the trie in bytes (uint32)
    the trie: a double array of uint32 (Darts), whose leaves are offsets into
    the replacements, each ending with a zero byte

The file may be damaged or hostile: no place of the trie is visited twice, so its size bounds the work.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt

from chainrule.errors import FormatError
from chainrule.text.unicode.utf8 import to_valid_utf8

LONGEST = 64  # bytes of a string that is replaced
ROWS = 2048  # nodes of the trie looked at in one go
LABELS = np.arange(1, 256, dtype=np.uint32)

Units = npt.NDArray[np.uint32]


class Charsmap:
    """The table of a charsmap; no content replaces nothing."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def replace(self, text: str) -> str:
        """The text with every replacement made."""
        if not self.table:
            return text
        text = to_valid_utf8(text).decode()
        parts, end, place = [], 0, 0
        while (found := self._pairs.search(text, place)) is not None:
            place = found.start()
            longest = min(self._longest, len(text) - place)
            size = next((n for n in range(longest, 1, -1) if text[place : place + n] in self._several), 0)
            if size:
                parts += [text[end:place].translate(self._single), self._several[text[place : place + size]]]
                end = place + size
            place += size or 1
        return "".join([*parts, text[end:].translate(self._single)])

    def check(self) -> None:
        """Refuse a charsmap that cannot be read."""
        self.table  # noqa: B018

    @cached_property
    def table(self) -> dict[str, str]:
        """Strings and their replacements."""
        if not self.content:
            return {}
        size = int.from_bytes(self.content[:4], "little")
        if len(self.content) < 4 or size % 4 or not 4 <= size <= len(self.content) - 4:
            raise FormatError(f"charsmap of {len(self.content)} bytes with a trie of {size} (it is damaged)")
        units = np.frombuffer(self.content, "<u4", size // 4, offset=4)
        texts = self.content[4 + size :]
        return {key: _until_zero(texts, offset) for key, offset in _keys(units).items()}

    @cached_property
    def _single(self) -> dict[int, str]:
        return {ord(key): text for key, text in self.table.items() if len(key) == 1}

    @cached_property
    def _several(self) -> dict[str, str]:
        return {key: text for key, text in self.table.items() if len(key) > 1}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._several), default=0)

    @cached_property
    def _pairs(self) -> re.Pattern[str]:
        """Finds where a replaced string of several characters may begin: by its second character."""
        seconds = "".join(map(re.escape, sorted({key[1] for key in self._several})))
        return re.compile(f".(?=[{seconds}])" if seconds else "(?!)", re.DOTALL)


def _keys(units: Units) -> dict[str, int]:
    """The strings of a trie and the values of their leaves."""
    found: dict[str, int] = {}
    nodes, names = np.array([_offset(units[:1])[0]], np.uint32), [b""]
    visited = 0
    for _ in range(LONGEST):
        below: list[npt.NDArray[np.uint32]] = []
        longer: list[bytes] = []
        for start in range(0, len(nodes), ROWS):
            rows = nodes[start : start + ROWS, None] ^ LABELS  # (rows, 255) places of the children
            inside = rows < len(units)
            label = np.where(inside, units[np.where(inside, rows, 0)], 0) & 0x800000FF
            parent, byte = np.nonzero(label == LABELS)
            child = rows[parent, byte]
            visited += len(child)
            if visited > len(units):
                raise FormatError("charsmap: its trie has a cycle (it is damaged)")
            unit = units[child]
            after = child ^ _offset(unit)
            keys = [names[start + p] + bytes([b + 1]) for p, b in zip(parent.tolist(), byte.tolist(), strict=True)]
            for place in np.flatnonzero((unit >> 8) & 1).tolist():
                if after[place] >= len(units):
                    raise FormatError("charsmap: a leaf beyond the end of its trie (it is damaged)")
                _add(found, keys[place], int(units[after[place]]) & 0x7FFFFFFF)
            below.append(after)
            longer += keys
        nodes, names = np.concatenate(below), longer
        if not names:
            return found
    raise FormatError(f"charsmap: a string of more than {LONGEST} bytes (it is damaged)")


def _offset(units: Units) -> Units:
    return (units >> 10) << ((units & 0x200) >> 6)


def _add(found: dict[str, int], key: bytes, value: int) -> None:
    try:
        found[key.decode()] = value
    except UnicodeDecodeError:
        raise FormatError(f"charsmap: the string {key!r} is not UTF-8 (it is damaged)") from None


def _until_zero(texts: bytes, offset: int) -> str:
    end = texts.find(b"\0", offset)
    if not 0 <= offset <= end:
        raise FormatError(f"charsmap: no text at {offset} of {len(texts)} bytes (it is damaged)")
    try:
        return texts[offset:end].decode()
    except UnicodeDecodeError:
        raise FormatError(f"charsmap: the text at {offset} is not UTF-8 (it is damaged)") from None
