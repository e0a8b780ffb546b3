"""Charsmaps in SentencePiece's format, for tests."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def charsmap(table: Mapping[str, str]) -> bytes:
    """The double array of a few strings, and what replaces them."""
    texts, offsets = b"", {}
    for key, text in table.items():
        offsets[key.encode()] = len(texts)
        texts += text.encode() + b"\0"
    prefixes = {key[:n] for key in offsets for n in range(len(key) + 1)}
    units, place, bases = {0: 0}, {b"": 0}, set[int]()
    for prefix in sorted(prefixes, key=lambda key: (len(key), key)):
        labels = sorted(
            {key[len(prefix)] for key in prefixes if len(key) == len(prefix) + 1 and key.startswith(prefix)}
        )
        labels = [0, *labels] if prefix in offsets else labels
        free = (
            b
            for b in range(256, 1 << 16)
            if b not in bases and all(b ^ label not in units for label in labels)
        )
        base = next(free)  # no other node's, or it would have its children
        bases.add(base)
        units[place[prefix]] |= (place[prefix] ^ base) << 10 | (prefix in offsets) << 8
        for label in labels:
            place[prefix + bytes([label])] = base ^ label
            units[base ^ label] = label
        if prefix in offsets:
            units[base] = 1 << 31 | offsets[prefix]
            del place[prefix + b"\0"]
    size = max(units) + 1
    array = struct.pack(f"<{size}I", *(units.get(place, 0) for place in range(size)))
    return struct.pack("<I", len(array)) + array + texts
