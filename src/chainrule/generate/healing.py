"""Token healing: a space at the end of a prompt becomes part of the first token that follows.

Most tokens of a BPE model begin with a space: " the" is one token. So a prompt that ends with a space ends with a token
that training texts hardly have before a word, and the model would continue with anything else. The tokens of that white
space are taken back, and the first tokens that are generated must spell it again: the prompt "In " is read as "In", and
what follows begins with a space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainrule.generate.processors import Logits, only
from chainrule.text import Tokenizer, prompt_ids
from chainrule.text.tokenizer import Spelling
from chainrule.types import Ids

LONGEST = (
    100  # how much white space is taken back, in characters or bytes: each is looked up in the vocabulary
)


@dataclass(frozen=True)
class Prompt:
    """The tokens of a prompt, and the white space at its end that was taken back."""

    ids: Any
    typed: str = ""
    """The text that was taken back: the tokens that follow begin with it."""
    spelling: Spelling = b""
    """The same as the tokenizer spells it."""
    spellings: Sequence[Spelling] = ()
    """Of each token; none for those that cannot follow."""
    _found: dict[Spelling, Ids] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, prompt: Any) -> Prompt:
        """A prompt, or ids of which nothing is taken back."""
        return prompt if isinstance(prompt, Prompt) else cls(prompt)

    def limit(self, scores: Logits, written: Sequence[int]) -> Logits:
        """scores (V,) of what follows `written` -> -inf for tokens that do not agree with what was taken back"""
        rest = self._rest(written) if self.typed else self.spelling[:0]
        if not rest:
            return scores
        kept = np.zeros(len(scores), bool)
        kept[self._agreeing(rest)] = True
        return only(scores, kept)

    def _rest(self, written: Sequence[int]) -> Spelling:
        """What is still to be spelled after these tokens"""
        length = 0
        for token in written:
            length += len(self.spellings[token])
            if length >= len(self.spelling):
                break
        return self.spelling[length:]

    def _agreeing(self, rest: Spelling) -> Ids:
        """Tokens that begin with `rest`, or with which it begins if tokens for all of it are left then"""
        if rest not in self._found:
            self._found[rest] = np.array(
                [
                    id
                    for id, token in enumerate(self.spellings)
                    if token
                    and (
                        token.startswith(rest)  # type: ignore[arg-type]  # all are bytes or all are strings
                        or (rest.startswith(token) and self._agreeing(rest[len(token) :]).size)  # type: ignore[arg-type]
                    )
                ],
                np.int64,
            )
        return self._found[rest]


def healed(tokenizer: Tokenizer, prompt: str, ids: Ids) -> Prompt:
    """The prompt of these ids without the tokens of the space at its end, if tokens of this tokenizer begin with one

    >>> from chainrule.text import BPETokenizer
    >>> tokenizer = BPETokenizer.train("the cat the dog the end", 260)
    >>> found = healed(tokenizer, "the ", tokenizer.encode("the "))
    >>> tokenizer.decode(found.ids), found.typed
    ('the', ' ')
    """
    whole = Prompt(ids)
    spellings = tokenizer.spellings
    if spellings is None or not prompt[-1:].isspace() or prompt[-1] in "\r\n":
        return whole
    special, rows = frozenset(tokenizer.special_ids.values()), ids.tolist()
    first, kept, typed = len(prompt_ids(tokenizer, "")), len(rows), ""
    while kept > first + 1 and rows[kept - 1] not in special:
        before = rows[kept - 2 : kept - 1]
        text = tokenizer.decode([*before, rows[kept - 1]])[len(tokenizer.decode(before)) :]
        if not text.isspace() or len(typed) + len(text) > LONGEST:
            break
        typed, kept = text + typed, kept - 1
    taken = [spellings[id] for id in rows[kept:]]
    if not taken:
        return whole
    spelling = taken[0][:0].join(taken)
    last = spelling[-1:]
    if not any(len(token) > 1 and token.startswith(last) for token in spellings):
        return whole  # each character or byte is a token: there is nothing to heal
    can_follow = [spelling[:0] if id in special else token for id, token in enumerate(spellings)]
    return Prompt(ids[:kept], typed, spelling, can_follow)
