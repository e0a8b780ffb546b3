"""Damage: bits flipped, files cut, numbers made extreme, JSON with other keys, types and values."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

EXTREMES = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 2**31, 2**63, 10**20, -(10**20), 1.5, 1e308, float("nan"), float("inf"),
    "", "x", "0", "\u0000", "a" * 1000, [], [0], [[]], [None], {}, {"type": "x"}, {"": 0},
)  # fmt: skip


def flip_or_cut(content: bytes, draw: random.Random) -> bytes:
    """What a disk does: a bit flipped, or the end missing."""
    place = draw.randrange(max(1, len(content)))
    if draw.random() < 0.4 or not content:
        return content[:place]
    return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]


def damaged(content: bytes, draw: random.Random) -> bytes:
    """What a hostile hand does: the same, and bytes inserted, repeated, removed, and numbers made extreme."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        content = draw.choice((flip_or_cut, _extreme, _extreme, _splice, _zeros, _noise))(content, draw)
    return content


def _extreme(content: bytes, draw: random.Random) -> bytes:
    size = draw.choice((1, 2, 4, 8))
    place = draw.randrange(max(1, min(len(content), draw.choice((64, 1024, len(content) or 1)))))
    number = draw.choice(EXTREMES) % (1 << 8 * size)
    return content[:place] + number.to_bytes(size, "little") + content[place + size :]


def _splice(content: bytes, draw: random.Random) -> bytes:
    a, b = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    b = min(b, a + 4096)
    return draw.choice((content[:a] + content[b:], content[:b] + content[a:b] + content[b:]))


def _zeros(content: bytes, draw: random.Random) -> bytes:
    a, size = draw.randrange(len(content) + 1), draw.choice((1, 8, 64))
    return content[:a] + draw.choice((b"\0", b"\xff")) * size + content[a + size :]


def _noise(content: bytes, draw: random.Random) -> bytes:
    a, size = draw.randrange(len(content) + 1), draw.choice((1, 4, 16))
    return content[:a] + draw.randbytes(size) + content[a:]


def edited(content: bytes, draw: random.Random) -> bytes:
    """JSON, or lines of JSON, edited by hand: a key renamed or removed, a value replaced, an entry repeated."""
    lines = content.split(b"\n")
    several = len([line for line in lines if line.startswith(b"{")]) > 1
    place = draw.randrange(len(lines)) if several else 0
    try:
        value = json.loads(lines[place] if several else content)
    except ValueError:
        return damaged(content, draw)
    for _ in range(draw.choice((1, 1, 2, 4))):
        value = _changed(value, draw)
    made = json.dumps(value).encode()
    return b"\n".join([*lines[:place], made, *lines[place + 1 :]]) if several else made


def _changed(value: Any, draw: random.Random) -> Any:
    """A copy in which one place, somewhere, is another."""
    value = copy.deepcopy(value)
    at, inside = value, []
    while isinstance(at, dict | list) and at:
        inside.append((at, key := draw.choice(list(at) if isinstance(at, dict) else range(len(at)))))
        at = at[key]
        if draw.random() < 0.3:
            break
    if not inside:
        return draw.choice(VALUES)
    holder, key = inside[-1]
    what = draw.random()
    if what < 0.2:
        del holder[key]
    elif what < 0.35 and isinstance(holder, dict):
        holder[draw.choice(("x", "", str(key).upper()))] = holder.pop(key)
    elif what < 0.45 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(draw.choice(VALUES))
    return value
