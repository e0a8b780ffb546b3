"""Texts as the C++ code takes them: UTF-8, many texts joined, with the place where each ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

BATCH = 1 << 23  # bytes handed over at once

Joined = tuple[bytes, npt.NDArray[np.int64]]


def to_utf8(text: str) -> bytes:
    """UTF-8, where a lone surrogate is encoded like any other character; `from_utf8` inverts it."""
    return text.encode("utf-8", "surrogatepass")


def from_utf8(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def to_valid_utf8(text: str) -> bytes:
    """Valid UTF-8: surrogates are paired or become U+FFFD, as in tiktoken."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def as_texts(texts: str | Iterable[str]) -> Iterator[str]:
    """An iterator over one text or many."""
    return iter([texts] if isinstance(texts, str) else texts)


def joined(parts: Sequence[bytes]) -> Joined:
    """All parts joined, and where each ends."""
    return b"".join(parts), np.cumsum([len(part) for part in parts], dtype=np.int64)


def batches(texts: str | Iterable[str], encode: Callable[[str], bytes] = to_utf8) -> Iterator[Joined]:
    """Texts joined into batches of about BATCH bytes."""
    batch: list[bytes] = []
    size = 0
    for text in as_texts(texts):
        batch.append(encode(text))
        size += len(batch[-1])
        if size >= BATCH:
            yield joined(batch)
            batch, size = [], 0
    if batch:
        yield joined(batch)
