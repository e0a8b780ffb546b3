"""SentencePiece's `precompiled_charsmap`: strings and what replaces them, the longest that fits at each place.

    the size of the trie in bytes (uint32)
    the trie: a double array of uint32 (Darts), whose leaves are offsets into
    the replacements, each ending with a zero byte

nmt_nfkc has 225,000 strings, so the trie is walked where a text asks for it, and steps are remembered.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from chainrule.errors import FormatError
from chainrule.text.unicode.utf8 import to_valid_utf8

LONGEST = 16  # characters of a string that is replaced
REMEMBERED = 1 << 18  # steps
PLAIN = re.compile(r"[ -~]+(?=[ -~])")

# The place after a character, and the offset of what replaces the string so far; -1: none.
Step = tuple[int, int]
NOWHERE: Step = (-1, -1)


class Charsmap:
    """The table of a charsmap; no content replaces nothing."""

    def __init__(self, content: bytes) -> None:
        size = int.from_bytes(content[:4], "little")
        if content and (len(content) < 8 or size % 4 or not 4 <= size <= len(content) - 4):
            raise FormatError(f"charsmap of {len(content)} bytes with a trie of {size} (it is damaged)")
        self._units = np.frombuffer(content, "<u4", size // 4, 4) if content else np.empty(0, "<u4")
        self._texts = content[4 + size :]
        self._steps: dict[tuple[int, str], Step] = {}

    def replace(self, text: str) -> str:
        """The text with every replacement made."""
        if not len(self._units):
            return text
        text = to_valid_utf8(text).decode()
        parts: list[str] = []
        place = 0
        while place < len(text):
            plain = PLAIN.match(text, place) if self._keeps_ascii else None
            if plain is not None:
                parts.append(plain[0])
                place = plain.end()
                continue
            size, content = self.longest(text, place)
            parts.append(content)
            place += size
        return "".join(parts)

    def longest(self, text: str, place: int) -> tuple[int, str]:
        """The size of the longest string at `place`, and what replaces it; a character that stays has the size 1."""
        node, found = self._root, (1, text[place])
        for size, character in enumerate(text[place : place + LONGEST], start=1):
            node, offset = self._step(node, character)
            if offset >= 0:
                found = size, self._text(offset)
            if node < 0:
                break
        return found

    def _step(self, node: int, character: str) -> Step:
        key = (node, character)
        if key not in self._steps:
            if len(self._steps) >= REMEMBERED:
                self._steps.clear()
            self._steps[key] = self._walk(node, character.encode())
        return self._steps[key]

    def _walk(self, node: int, content: bytes) -> Step:
        """From a node of the trie along the bytes of a character."""
        units, offset = self._units, -1
        for byte in content:
            node ^= byte
            unit = int(units[node]) if node < len(units) else -1
            if unit & 0x800000FF != byte:
                return NOWHERE
            leaf, node = unit >> 8 & 1, node ^ _offset(unit)
            offset = int(units[node]) & 0x7FFFFFFF if leaf and node < len(units) else -1
        return node, offset

    @cached_property
    def _root(self) -> int:
        return _offset(int(self._units[0]))

    @cached_property
    def _keeps_ascii(self) -> bool:
        """True if no printable ASCII character is replaced where another follows, so that such runs are copied."""
        printable = [chr(code) for code in range(0x20, 0x7F)]
        steps = [self._step(self._root, character) for character in printable]
        followed = (self._step(node, second) for node, _ in steps if node >= 0 for second in printable)
        return all(offset < 0 for _, offset in steps) and all(step == NOWHERE for step in followed)

    def _text(self, offset: int) -> str:
        end = self._texts.find(b"\0", offset)
        try:
            return self._texts[offset : end if end >= 0 else offset].decode()
        except UnicodeDecodeError:
            raise FormatError(f"charsmap: the text at {offset} is not UTF-8 (it is damaged)") from None


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)
