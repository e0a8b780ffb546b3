"""Text from tokens that arrive one by one, whole characters only."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from chainrule.text.bpe import BPETokenizer
from chainrule.text.sentencepiece_bpe import PieceBPETokenizer
from chainrule.text.tokenizer import Tokenizer
from chainrule.text.unigram import UnigramTokenizer


class TextStream:
    """Takes ids as they are generated and gives the text that is certain so far; `close` gives the rest.

    A token of bytes may end within a character, whose bytes then wait for the next token. All texts together are what
    `decode` makes of all ids (but a lone surrogate, which is no character, becomes U+FFFD). `after` are ids that came
    before, such as a prompt: what follows them keeps the space between.

    >>> from chainrule.text import BPETokenizer
    >>> from chainrule.text.streaming import TextStream
    >>> tokenizer = BPETokenizer.train("", 256)
    >>> stream = TextStream(tokenizer)
    >>> [stream.push(id) for id in tokenizer.encode("a🙂b").tolist()]
    ['a', '', '', '', '🙂', 'b']
    >>> stream.close()
    ''
    """

    def __init__(self, tokenizer: Tokenizer, after: Iterable[int] = ()) -> None:
        self.tokenizer = tokenizer
        self._previous = [int(id) for id in after][-1:]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        """The text that `id` completes; empty if it ends within a character."""
        before, self._previous = self._previous, [id]
        if isinstance(self.tokenizer, BPETokenizer | PieceBPETokenizer | UnigramTokenizer):
            text = self._decoder.decode(self.tokenizer.decode_bytes([id]))
            return text.removeprefix(" ") if self._drops_space(before) else text
        # Others may put a space between tokens, so the token is read after the one before it.
        return self.tokenizer.decode([*before, id])[len(self.tokenizer.decode(before)) :]

    def _drops_space(self, before: list[int]) -> bool:
        """True for a tokenizer that puts a space before the text, at the first token of it."""
        if isinstance(self.tokenizer, PieceBPETokenizer):
            return self.tokenizer.prefix and (not before or before == self.tokenizer.start_ids)
        return not before and isinstance(self.tokenizer, UnigramTokenizer) and self.tokenizer.prefix

    def close(self) -> str:
        """What is left: U+FFFD for a character that was never finished. The stream can be used again."""
        self._previous = []
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
