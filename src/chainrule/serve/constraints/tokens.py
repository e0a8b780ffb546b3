"""Which tokens can follow: the bytes of all tokens in a tree, walked together with the grammar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from chainrule.errors import ChainruleError
from chainrule.generate.processors import Logits, Truths, only
from chainrule.serve.constraints.grammar import STRING_REST, State, advance, begin
from chainrule.serve.constraints.schema import Value

REMEMBERED = 512  # states whose tokens are remembered
Tree = dict[Any, Any]  # byte -> tree; None -> the tokens that end here


class TokenTree:
    """The tokens of a vocabulary by their bytes, and which of them can follow in a state."""

    def __init__(self, spellings: Iterable[tuple[int, bytes]], vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.spellings = {id: spelling for id, spelling in spellings if spelling}
        inside: list[int] = []
        others: list[int] = []
        start = begin(STRING_REST)
        for id, spelling in self.spellings.items():
            state = start
            for byte in spelling:
                state = advance(state, byte)
                if None in state:  # the string has ended
                    break
            (inside if state and None not in state else others).append(id)
        self._all = self._tree(self.spellings)
        self._others = self._tree(others)  # those that do not stay inside a string
        self._inside = np.zeros(vocab_size, bool)
        self._inside[inside] = True
        self._found: dict[State, Truths] = {}

    def _tree(self, ids: Iterable[int]) -> Tree:
        root: Tree = {}
        for id in ids:
            node = root
            for byte in self.spellings[id]:
                node = node.setdefault(byte, {})
            node.setdefault(None, []).append(id)
        return root

    def allowed(self, state: State) -> Truths:
        """Mask of the tokens that can follow (V,)"""
        if state not in self._found:
            if len(self._found) >= REMEMBERED:
                self._found.pop(next(iter(self._found)))
            self._found[state] = self._search(state)
        return self._found[state]

    def _search(self, state: State) -> Truths:
        """Most tokens can follow inside a string, whatever comes after it: they are known already."""
        in_string = all(stack is not None and stack.symbol is STRING_REST for stack in state)
        mask = self._inside.copy() if in_string else np.zeros(self.vocab_size, bool)
        mask[list(self._walk(self._others if in_string else self._all, state))] = True
        return mask

    def _walk(self, tree: Tree, state: State) -> Iterator[int]:
        for byte, below in tree.items():
            if byte is None:
                yield from below
            elif found := advance(state, byte):
                yield from self._walk(below, found)


class JsonConstraint:
    """Keeps a text to the grammar of a schema, token by token."""

    def __init__(self, value: Value, tree: TokenTree) -> None:
        self.tree = tree
        self.state: State = begin(value)

    def limit(self, scores: Logits) -> Logits:
        mask = self.tree.allowed(self.state)
        if not mask.any():
            why = "it lacks a character, or the schema nests without end"
            raise ChainruleError(f"response_format: no token of this model continues the JSON ({why})")
        return only(scores, mask)

    def push(self, token: int) -> None:
        for byte in self.tree.spellings[token]:
            self.state = advance(self.state, byte)

    @property
    def complete(self) -> bool:
        return self.state == {None}
