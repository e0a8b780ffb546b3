"""Drafts: tokens guessed ahead, so that one pass over the weights checks several of them.

A guess is only ever accepted if it is the token that the model draws at that position, from the logits it has anyway:
the text is the same token for token, greedy or sampled, whatever is guessed (after Leviathan et al. 2023, who sample).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from chainrule.errors import ConfigError
from chainrule.generate.requests import Request
from chainrule.serve.batching.caches import Caches

GUESSES = 4
LONGEST, SHORTEST = 4, 2  # tokens at the end of a text that are looked up in it


class Drafter(Protocol):
    """Guesses what follows texts."""

    def guess(self, texts: Sequence[tuple[int, Request]]) -> list[list[int]]:
        """(slot, request) of each -> tokens that may follow; no more than the request may write after its next one"""


class NgramLookup:
    """What followed the last few tokens when they occurred before, in the prompt or the text."""

    def __init__(self, guesses: int = GUESSES) -> None:
        self.guesses = guesses

    def guess(self, texts: Sequence[tuple[int, Request]]) -> list[list[int]]:
        return [looked_up(r.prompt + r.tokens, allowed(r, self.guesses)) for _, r in texts]


def looked_up(ids: list[int], n: int) -> list[int]:
    """At most n tokens that followed the newest earlier occurrence of the end of ids

    >>> from chainrule.serve.batching.drafts import looked_up
    >>> looked_up([1, 2, 3, 4, 9, 1, 2, 3], 2)
    [4, 9]
    """
    for length in range(min(LONGEST, len(ids) - 1), SHORTEST - 1, -1) if n > 0 else ():
        end = ids[-length:]
        for start in range(len(ids) - length - 1, -1, -1):
            if ids[start] == end[0] and ids[start : start + length] == end:
                return ids[start + length : start + length + n]
    return []


class DraftModel:
    """A smaller model with the same tokens, which draws at each position with the same random number."""

    def __init__(self, caches: Caches, vocab_size: int, guesses: int = GUESSES) -> None:
        if caches.vocab_size != vocab_size:
            rule = "must be equal: they share their tokens"
            raise ConfigError(f"serve: draft of {caches.vocab_size} tokens, model of {vocab_size} ({rule})")
        if not caches.rewinds:
            raise ConfigError("serve: a draft that cannot go back in its text (must be a transformer)")
        self.caches = caches
        self.guesses = guesses
        self.seen: list[list[int]] = [[] for _ in range(caches.slots)]

    def guess(self, texts: Sequence[tuple[int, Request]]) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in texts]
        counts = [allowed(request, self.guesses) for _, request in texts]
        try:
            for n in range(max(counts, default=0)):
                rows = [i for i, count in enumerate(counts) if n < count]
                self._extend([(*texts[i], found[i]) for i in rows])
        except Exception:  # the texts are written without guesses, and read again for the next ones
            for slot, _ in texts:
                self.caches.keep(slot, 0)
                self.seen[slot] = []
            return [[] for _ in texts]
        return found

    def _extend(self, texts: Sequence[tuple[int, Request, list[int]]]) -> None:
        """One more guess for each, which is added to its list."""
        pieces = []
        for slot, request, guessed in texts:
            ids, seen = request.prompt + request.tokens + guessed, self.seen[slot]
            same = next((i for i, (a, b) in enumerate(zip(ids, seen, strict=False)) if a != b), len(seen))
            kept = self.caches.keep(slot, min(same, len(ids) - 1))
            pieces.append(ids[kept:])
            self.seen[slot] = ids
        rows = self.caches.read(pieces, [slot for slot, _, _ in texts], [False] * len(texts))
        for (_, request, guessed), logits in zip(texts, rows, strict=True):
            guessed.append(request.draw(logits[0], request.tokens + guessed))


def allowed(request: Request, guesses: int) -> int:
    """How many guesses can be used: the token after the last one is drawn in any case"""
    return min(guesses, request.sampling.max_new_tokens - len(request.tokens) - 1)
