"""Odd inputs to every op and every function made of ops: an answer or a ChainruleError, never a foreign exception."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from tests.battery import checks as battery

FUNCTIONS: dict[str, Any] = {**cr.ops.all_ops(), **cr.ops.compositions()}

ODD: list[Any] = [
    3, -1, 2.5, True, None, "abc", b"abc", [], [1, 2], [[1, 2], [3]], {}, {"a": 1}, object(), 1j, float("nan"),
    np.array([]), np.zeros((0, 3), np.float32), np.zeros((2, 0)), np.arange(3), np.ones((2, 3), np.float32),
    np.ones((5, 7, 2)), np.array(2.0), np.array([True, False]), np.array(["a", "b"]), np.array([None, 1]),
    np.array([1j, 2]), np.array(["2020-01-01"], "datetime64[D]"), np.float32(1), np.int64(4),
]  # fmt: skip
CONSTANTS: list[Any] = [
    99, -99, 1.5, None, "x", [], (0, 0), (0, 99), [1, "a"], {}, object(), np.array([7, 8]), float("nan"), -1, True
]  # fmt: skip


def tensors(value: Any) -> Any:
    """The same as a Tensor that gets a gradient, if it can be one."""
    plain = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return cr.Tensor(value, requires_grad=True) if plain else value


def calls(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls with one thing wrong, and with everything wrong."""
    function = FUNCTIONS[name]
    taken = inspect.signature(function).parameters
    positions = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in taken.values()) or 2
    examples = battery.examples(function) if isinstance(function, cr.Op) else []
    for odd in ODD:
        yield (odd,) * positions, {}
        yield (np.ones((2, 3), np.float32), odd), {}
        for example in examples[:1]:
            for i in range(len(example.args)):
                yield (*example.args[:i], odd, *example.args[i + 1 :]), example.kwargs
    for key, odd in itertools.product(taken, CONSTANTS):
        for example in examples[:1]:
            yield example.args, {**example.kwargs, key: odd}
        yield (np.ones((2, 3), np.float32),), {key: odd}
    yield (), {}
    yield (np.ones(3),) * 9, {}
    yield (np.ones(3),), {"keepdim": True}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_call_is_refused_in_our_words(name: str) -> None:
    tried = 0
    for i, (args, kwargs) in enumerate(calls(name)):
        wrap = tensors if i % 2 else lambda a: a
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                FUNCTIONS[name](*map(wrap, args), **kwargs)
            except cr.ChainruleError as error:
                assert name in str(error) or ":" in str(error), f"{name}{args}{kwargs}: {error}"
                assert "\n" not in str(error)
            except Exception as error:
                pytest.fail(f"{name}(*{args!r}, **{kwargs!r}) raised {type(error).__name__}: {error}")
        tried += 1
    assert tried > 60
