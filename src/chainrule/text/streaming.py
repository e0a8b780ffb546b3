"""Text from tokens that arrive one by one, whole characters only."""

from __future__ import annotations

import codecs

from chainrule.text.bpe import BPETokenizer
from chainrule.text.tokenizer import Tokenizer


class TextStream:
    """Takes ids as they are generated and gives the text that is certain so far; `close` gives the rest.

    A token of byte-level BPE may end within a character, whose bytes then wait for the next token. All texts together
    are what `decode` makes of all ids.

    >>> from chainrule.text import BPETokenizer
    >>> from chainrule.text.streaming import TextStream
    >>> tokenizer = BPETokenizer.train("", 256)
    >>> stream = TextStream(tokenizer)
    >>> [stream.push(id) for id in tokenizer.encode("a🙂b").tolist()]
    ['a', '', '', '', '🙂', 'b']
    >>> stream.close()
    ''
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._previous: list[int] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        """The text that `id` completes; empty if it ends within a character."""
        if isinstance(self.tokenizer, BPETokenizer):
            return self._decoder.decode(self.tokenizer.decode_bytes([id]))
        # Others may put a space between tokens, so the token is read after the one before it.
        before = self.tokenizer.decode(self._previous)
        both = self.tokenizer.decode([*self._previous, id])
        self._previous = [id]
        return both[len(before) :]

    def close(self) -> str:
        """What is left: U+FFFD for a character that was never finished. The stream can be used again."""
        self._previous = []
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
