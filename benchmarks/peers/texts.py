"""The texts that tokenizers are timed on."""

from __future__ import annotations

import os
import string
from collections.abc import Iterator
from pathlib import Path

import chainrule as cr


def data_folder(*parts: str) -> Path | None:
    """A path of $CHAINRULE_DATA if it is there."""
    home = os.environ.get("CHAINRULE_DATA")
    path = Path(home, *parts) if home else None
    return path if path and path.exists() else None


def whole_text() -> str:
    """The texts of $CHAINRULE_DATA, or the sources of Python's library."""
    folder = data_folder("text")
    if folder is None:
        return cr.data.load("stdlib").text
    return "\n".join(p.read_text(encoding="utf-8", errors="replace") for p in sorted(folder.glob("*.txt")))


def documents(text: str, characters: int) -> list[str]:
    return [text[i : i + characters] for i in range(0, len(text), characters)]


def rotated(parts: list[str], megabytes: float) -> Iterator[str]:
    """More text than there is: further copies have their letters rotated, other words with the same frequencies."""
    letters, size, shift = string.ascii_lowercase, 0, 0
    while True:
        table = str.maketrans(letters, letters[shift:] + letters[:shift])
        for part in parts:
            if size >= megabytes * 1e6:
                return
            yield part.translate(table)
            size += len(part)
        shift = (shift + 3) % 26


def n_bytes(parts: list[str]) -> int:
    return sum(len(part.encode("utf-8", "replace")) for part in parts)
