"""Decoding tokens one by one, into whole characters."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from chainrule.text.bpe import BPETokenizer
from chainrule.text.pipeline import PipelineTokenizer
from chainrule.text.sentencepiece_bpe import SentencePieceBPETokenizer
from chainrule.text.tokenizer import Tokenizer
from chainrule.text.unigram import UnigramTokenizer

LONGEST = 4  # bytes of a character, each of which may be a token


class TextStream:
    """Decodes ids as they are generated: `push` returns the text that is complete, `close` the rest.

    A token may end inside a character; its bytes then wait for the next token. All texts joined equal `decode` of all
    ids, except that a lone surrogate becomes U+FFFD, and that special tokens are left out unless `special` is true.
    `after` are the ids before the first one, such as a prompt: the space between them and the text is kept.

    >>> from chainrule.text import BPETokenizer
    >>> from chainrule.text.streaming import TextStream
    >>> tokenizer = BPETokenizer.train("", 256)
    >>> stream = TextStream(tokenizer)
    >>> [stream.push(id) for id in tokenizer.encode("a🙂b").tolist()]
    ['a', '', '', '', '🙂', 'b']
    >>> stream.close()
    ''
    """

    def __init__(self, tokenizer: Tokenizer, after: Iterable[int] = (), *, special: bool = False) -> None:
        self.tokenizer = tokenizer
        self._hidden = frozenset() if special else tokenizer.conventions.hidden(tokenizer.special_ids)
        self._previous = [int(id) for id in after][-1:]
        self._waiting: list[int] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        """The text that `id` completes; empty if it ends inside a character."""
        if id in self._hidden:
            return ""
        before, self._previous = self._previous, [id]
        if isinstance(self.tokenizer, PipelineTokenizer):
            return self._complete(before, [*self._waiting, id])
        if isinstance(self.tokenizer, BPETokenizer | SentencePieceBPETokenizer | UnigramTokenizer):
            text = self._decoder.decode(self.tokenizer.decode_bytes([id]))
            return text.removeprefix(" ") if self._drops_space(before) else text
        # Other tokenizers put spaces between tokens, so a token is decoded together with the one before it.
        return self.tokenizer.decode([*before, id])[len(self.tokenizer.decode(before)) :]

    def _complete(self, before: list[int], ids: list[int]) -> str:
        """The text of the ids after `before`; they wait while their last character may be unfinished."""
        text = self.tokenizer.decode([*before, *ids])[len(self.tokenizer.decode(before)) :]
        waits = text.endswith("\ufffd") and len(ids) < LONGEST
        self._waiting, self._previous = (ids, before) if waits else ([], ids)
        return "" if waits else text

    def _drops_space(self, before: list[int]) -> bool:
        """True for the first token of a tokenizer that puts a space before the text."""
        if isinstance(self.tokenizer, SentencePieceBPETokenizer):
            return self.tokenizer.prefix and (not before or before == self.tokenizer.start_ids)
        return not before and isinstance(self.tokenizer, UnigramTokenizer) and self.tokenizer.prefix

    def close(self) -> str:
        """The rest: U+FFFD for an unfinished character. The stream is then ready for another text."""
        waiting, before = self._waiting, self._previous
        self._waiting, self._previous = [], []
        if waiting:
            return self.tokenizer.decode([*before, *waiting])[len(self.tokenizer.decode(before)) :]
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
