"""Streams text up to the first stop string; no part of it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainrule.text import TextStream, Tokenizer


class StopText:
    """Takes ids one by one and gives the text that is certain: whole characters, and no beginning of a stop string.

    Of several stop strings the one that is complete first counts, of those the longest; so it does not matter how the
    text is cut into tokens. `after` are the ids of the prompt; `special` shows special tokens. The text begins with
    `typed`, which was typed already: it is not given again.

    >>> from chainrule.generate.stopping import StopText
    >>> from chainrule.text import CharTokenizer
    >>> tokenizer = CharTokenizer("abcd")
    >>> text = StopText(tokenizer, ["bcd"])
    >>> [text.push(id) for id in tokenizer.encode("abcabcd").tolist()], text.stopped
    (['a', '', '', 'bca', '', '', ''], True)
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: Sequence[str] = (),
        after: Iterable[int] = (),
        *,
        special: bool = False,
        typed: str = "",
    ) -> None:
        self._stream = TextStream(tokenizer, after, special=special)
        self._stop = tuple(stop)
        self._typed = typed
        self._held = ""  # may be the beginning of a stop string
        self.stopped = False

    def push(self, id: int) -> str:
        """The text that has become certain; nothing once it has stopped."""
        return "" if self.stopped else self._next(self._stream.push(id))

    def close(self) -> str:
        """The rest, when no token follows: what was held back, and U+FFFD for half a character."""
        if self.stopped:
            return ""
        text = self._next(self._stream.close())
        held, self._held = self._held, ""
        return text + held

    def _next(self, new: str) -> str:
        new, self._typed = new[len(self._typed) :], self._typed[len(new) :]
        text = self._held + new
        found = [(at + len(stop), at) for stop in self._stop if (at := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        held = max((overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


def overlap(text: str, stop: str) -> int:
    """How many of the last characters of `text` may be the beginning of `stop`"""
    most = min(len(text), len(stop) - 1)
    return next((n for n in range(most, 0, -1) if stop.startswith(text[-n:])), 0)
