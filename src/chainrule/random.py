"""Randomness without state: every draw is a pure function of (seed, purpose, indices).

A Philox generator is keyed by (seed, hash of the purpose) and its counter starts at the indices, so the draw for
("order", step 812) can be made at any time, in any process, in any order. Nothing has to be saved: a
resume needs only the step number, and an evaluation in between changes nothing.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from chainrule.errors import ConfigError

_MASK64 = (1 << 64) - 1


class _State(threading.local):
    seed: int | None = None  # None: the global seed
    step = 0
    part = 0  # of the batch of this step
    watch: Callable[[], None] | None = None  # told of every generator that is made

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()  # draws so far in this step, by purpose


_state = _State()
_process_seed = 0


def seed(value: int) -> None:
    """Set the default seed of all random draws.

    >>> import chainrule as cr
    >>> cr.seed(1337)
    """
    global _process_seed
    _process_seed = check_seed(value)
    _state.seed, _state.step, _state.part, _state.calls = None, 0, 0, Counter()


def check_seed(value: int) -> int:
    if not isinstance(value, int | np.integer) or not 0 <= value <= _MASK64:
        raise ConfigError(f"seed: got {value!r} (must be an integer from 0 to 2**64 - 1)")
    return int(value)


@contextmanager
def _at(seed: int | None, step: int, calls: Counter[str], part: int = 0) -> Iterator[None]:
    """Draw from this place inside the block, then restore the state."""
    before = _state.seed, _state.step, _state.part, _state.calls
    _state.seed, _state.step, _state.part, _state.calls = seed, step, part, calls
    try:
        yield
    finally:
        _state.seed, _state.step, _state.part, _state.calls = before


def seeded(value: int) -> AbstractContextManager[None]:
    """Use another default seed inside the block."""
    return _at(check_seed(value), 0, Counter())


def current_seed() -> int:
    """The default seed in force."""
    return _process_seed if _state.seed is None else _state.seed


def key(purpose: str, *index: int, seed: int | None = None) -> tuple[int, ...]:
    """The five 64-bit words that name one stream: (seed, purpose hash, index 0, index 1, index 2)."""
    if len(index) > 3:
        raise ConfigError(f"random key {purpose!r}: got {len(index)} indices (at most 3)")
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    words = [i & _MASK64 for i in index] + [0] * (3 - len(index))
    return (current_seed() if seed is None else check_seed(seed), int.from_bytes(digest, "little"), *words)


def from_key(words: tuple[int, ...]) -> np.random.Generator:
    """The generator named by `key(...)`; the lowest counter word runs along the stream."""
    if _state.watch is not None:
        _state.watch()
    counter = np.array([0, *words[2:]], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=np.array(words[:2], dtype=np.uint64), counter=counter))


def generator(purpose: str, *index: int, seed: int | None = None) -> np.random.Generator:
    """A generator that depends only on its arguments (and on the default seed if none is given).

    >>> from chainrule.random import generator
    >>> generator("order", 3, seed=7).integers(0, 1000, 3)
    array([577, 521, 712])
    """
    return from_key(key(purpose, *index, seed=seed))


def step(number: int) -> AbstractContextManager[None]:
    """Tie the draws of layers such as dropout to a training step: step 812 always gives the same masks."""
    return _at(_state.seed, number, Counter())


def part(number: int) -> AbstractContextManager[None]:
    """Tie the draws to a part of the batch of this step, whichever process works on it."""
    return _at(_state.seed, _state.step, Counter(), number)


def next_key(purpose: str) -> tuple[int, ...]:
    """A fresh key for the next draw of this step, or of this part of it (dropout masks)."""
    _state.calls[purpose] += 1
    return key(purpose, _state.step, _state.calls[purpose], _state.part)


@contextmanager
def watched(watch: Callable[[], None]) -> Iterator[None]:
    """Call `watch` for every generator that is made inside: what it draws differs from step to step."""
    before, _state.watch = _state.watch, watch
    try:
        yield
    finally:
        _state.watch = before


def place() -> tuple[int, int, int]:
    """The seed, the step and its part: words 0, 2 and 4 of the keys that `next_key` gives."""
    return current_seed(), _state.step & _MASK64, _state.part & _MASK64


Position = tuple[int, int, int, Counter[str]]


def position() -> Position:
    """The seed, the step, its part and the number of keys drawn in it; `replay` repeats the draws after it."""
    return current_seed(), _state.step, _state.part, _state.calls.copy()


def replay(since: Position) -> AbstractContextManager[None]:
    """Repeat the keys drawn after `since` inside the block, then restore the state."""
    seed, step, part, calls = since
    return _at(seed, step, calls.copy(), part)
