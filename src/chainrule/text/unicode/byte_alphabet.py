"""GPT-2's byte alphabet: bytes as visible characters, in which files store byte-level BPE.

Printable bytes stand for themselves, the other 68 for the characters from U+0100 on: a space is Ġ, a new line Ċ.
"""

from __future__ import annotations

from chainrule.errors import FormatError

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]

# All 256 bytes in the order of their characters, which is the order of their ids in GPT-2.
BYTES_IN_ORDER = bytes([*_PRINTABLE, *(byte for byte in range(256) if byte not in _PRINTABLE)])

_SHOWN = dict(zip(BYTES_IN_ORDER, [*_PRINTABLE, *range(0x100, 0x144)], strict=True))
HIDDEN = {character: byte for byte, character in _SHOWN.items()}
_TO_BYTES = {character: HIDDEN.get(character, 0xFFFF) for character in range(0x144)}  # 0xFFFF is no byte


def show(data: bytes) -> str:
    """Any bytes as visible characters.

    >>> show(b" caf\\xc3\\xa9")
    'ĠcafÃ©'
    """
    return data.decode("latin-1").translate(_SHOWN)


def hide(text: str) -> bytes:
    """The inverse of `show`."""
    try:
        return text.translate(_TO_BYTES).encode("latin-1")
    except UnicodeEncodeError:
        wrong = next(character for character in text if ord(character) not in HIDDEN)
        rule = "must be in GPT-2's byte alphabet"
        raise FormatError(f"token {text!r}: {wrong!r} stands for no byte ({rule})") from None
