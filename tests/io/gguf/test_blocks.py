"""GGUF's formats of numbers, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.io import gguf
from chainrule.io.gguf.blocks import FORMATS
from chainrule.models import Llama, LlamaConfig
from chainrule.text import CharTokenizer

CHARS = CharTokenizer("abcdefghij ")


def by_hand(number: int, block: bytes) -> list[float]:
    return FORMATS[number].decode(memoryview(block)).tolist()


def test_blocks_by_hand() -> None:
    half, one = np.float16(0.5).tobytes(), np.float16(1).tobytes()
    numbers = bytes([0x21, 0xF0, *range(14)])  # lower halves first, then the upper ones
    lower = [1, 0, *range(14)]
    upper = [2, 15, *[0] * 14]
    assert by_hand(2, half + numbers) == [0.5 * (q - 8) for q in lower + upper]
    assert by_hand(3, half + one + numbers) == [0.5 * q + 1 for q in lower + upper]
    assert by_hand(8, half + np.arange(-16, 16, dtype=np.int8).tobytes()) == [0.5 * q for q in range(-16, 16)]
    fifth = bytes([0b101, 0, 0, 0x80])  # of numbers 0, 2 and 31
    above = [16 * (i in (0, 2, 31)) + q for i, q in enumerate(lower + upper)]
    assert by_hand(6, half + fifth + numbers) == [0.5 * (q - 16) for q in above]
    assert by_hand(7, half + one + fifth + numbers) == [0.5 * q + 1 for q in above]
    assert by_hand(1, np.array([1.5, -2], "<f2").tobytes()) == [1.5, -2.0]
    assert by_hand(30, b"\x80\x3f\x20\xc0") == [1.0, -2.5]


def test_large_blocks_by_hand() -> None:
    half, one = np.float16(0.5).tobytes(), np.float16(1).tobytes()
    small = bytes([2, 0, 0, 0x80 | 3, 1, 0, 0, 0x40, 0, 0, 0, 0x5A])  # scales 2, 3 and 42, leasts 1 and 21
    scales = np.repeat([2, 0, 0, 3, 0, 0, 0, 0xA | 0x20], 32)
    leasts = np.repeat([1, 0, 0, 0, 0, 0, 0, 0x5 | 0x10], 32)
    q = np.arange(256) % 15
    low = q.reshape(4, 2, 32)  # of 64 numbers the first 32 in the lower halves, the others above them
    four = (low[:, 0] | low[:, 1] << 4).astype(np.uint8).tobytes()
    assert by_hand(12, half + one + small + four) == (0.5 * scales * q - leasts).tolist()
    upper = np.arange(256) % 3 == 0
    fifth = np.packbits(upper.reshape(8, 32).T, axis=1, bitorder="little").tobytes()
    assert (
        by_hand(13, half + one + small + fifth + four) == (0.5 * scales * (q + 16 * upper) - leasts).tolist()
    )
    top = np.arange(256) % 4
    halves, quarters = q.reshape(2, 2, 64), top.reshape(2, 4, 32)
    four = (halves[:, 0] | halves[:, 1] << 4).astype(np.uint8).tobytes()
    two = np.bitwise_or.reduce(quarters << np.arange(0, 8, 2)[:, None], axis=1).astype(np.uint8).tobytes()
    signed = np.arange(-8, 8, dtype=np.int8)
    want = 0.5 * np.repeat(signed, 16) * (q + 16 * top - 32)
    assert by_hand(14, four + two + signed.tobytes() + half) == want.tolist()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "x.gguf"
    gguf.write(Llama(LlamaConfig(1, 2, 1, 4, 4, 4, 11)), CHARS, path)
    return path.read_bytes()
