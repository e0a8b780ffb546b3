"""Results that are kept: computed once, also for two who ask at the same time; one who waits can be canceled."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from chainrule.web.jobs import Canceled, silent
from chainrule.web.kept import Kept


def test_two_who_ask_at_once_get_one_result() -> None:
    kept: Kept[object] = Kept(2)
    begun, go, made = threading.Event(), threading.Event(), []

    def make() -> object:
        begun.set()
        go.wait(10)
        made.append(object())
        return made[-1]

    def canceled(said: str, fraction: float | None) -> None:
        raise Canceled

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(kept.of, "a", make, silent)
        begun.wait(10)
        with pytest.raises(Canceled):
            kept.of("a", make, canceled)
        second = pool.submit(kept.of, "a", make, silent)
        go.set()
        assert first.result(10) is second.result(10) is made[0] and len(made) == 1


def test_the_oldest_is_forgotten_and_a_failure_is_not_kept() -> None:
    kept: Kept[int] = Kept(2)

    def fails() -> int:
        raise ValueError

    with pytest.raises(ValueError):
        kept.of("a", fails, silent)
    assert [kept.of(key, lambda: 1, silent) for key in "abac"] == [1] * 4
    assert kept.of("a", lambda: 2, silent) == 1 and kept.of("b", lambda: 2, silent) == 2
