"""Races of training steps: who takes part, and what is said of the goals."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.harness import Measured, Unavailable
from benchmarks.peers import steps
from benchmarks.peers.steps import GOALS, SIZES, Found, floor_ms, goal_rows, headline, raced
from benchmarks.report import Table


def found(ms: float, peer: float, growth: float) -> Found:
    sides = {"Chainrule": growth, "PyTorch eager": 120.0, "PyTorch compiled": 100.0, "JAX": 10.0}
    return Found(Measured("Chainrule", [ms]), [Measured("PyTorch eager", [peer])], {}, sides, sides, 0)


def test_sizes_by_name_and_by_number() -> None:
    assert SIZES["a"] == (4, 4, 128, 64, 12, 65)
    assert SIZES["2,4,256,1024,1,65"] == (2, 4, 256, 1024, 1, 65)
    assert list(SIZES) == ["a", "b", "c"]  # others are not remembered


def test_memory_is_compared_with_the_leanest_pytorch() -> None:
    assert found(1, 1, 50).least("growth") == 100  # not with JAX


@pytest.mark.parametrize(
    ("ms", "peer", "growth", "levels"),
    [
        (10, 17, 30, ["aim", "aim", "aim"]),
        (10, 15, 45, ["must", "aim", "must"]),
        (10, 14, 60, ["no", "aim", "no"]),
    ],
)
def test_goals(ms: float, peer: float, growth: float, levels: list[str]) -> None:
    rows = goal_rows("a", found(ms, peer, growth), floor=9.0)
    assert [row[-1] for row in rows] == levels
    assert [row[0] for row in rows] == [f"a: {what}" for what in GOALS]
    assert rows[0][1] == f"{peer / ms:.3f}" and rows[0][2:4] == ("1.45", "1.60")


def test_a_share_below_the_floor_misses_the_goal() -> None:
    shares = [goal_rows("b", found(10, 20, 1), floor)[1][-1] for floor in (7.9, 8.1, 8.8)]
    assert shares == ["no", "must", "aim"]


def test_the_floor_is_the_arithmetic_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "machine_limits", lambda threads: {"gflops": 196.0})
    for config, (L, _, C, T, B, V) in SIZES.items():
        by_hand = 6 * B * T * (12 * L * C * C + V * C + L * T * C) / 196e6
        assert floor_ms(config, 2) == pytest.approx(by_hand, rel=2e-3)


class Fake:
    """A program that takes the same time always."""

    open = 0
    most = 0

    def __init__(self, name: str, ms: float) -> None:
        self.name, self.ms, self.asked = name, ms, 0
        self.info: dict[str, Any] = {"peak_mb": 300.0, "imported_mb": 100.0, "page_faults": 3}
        Fake.open += 1
        Fake.most = max(Fake.most, Fake.open)

    def ask(self, case: str, count: int) -> None:
        self.asked += count

    def measured(self, case: str) -> Measured:
        return Measured(self.name, [self.ms] * self.asked)

    def cpu_ticks(self) -> int:
        return 0

    def close(self) -> None:
        Fake.open -= 1


def absent() -> Any:
    raise Unavailable("the package jax is not installed")


def test_the_fastest_of_the_heats_are_in_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "Program", lambda name, *_: Fake(name, 10.0))
    monkeypatch.setattr(Fake, "most", 0)
    monkeypatch.setattr(steps, "IN_RACE", 2)
    times = {"PyTorch eager": 15.0, "PyTorch compiled": 14.0, "slow": 16.0}
    starts: Any = [(name, lambda name=name, ms=ms: Fake(name, ms)) for name, ms in times.items()]
    table = Table("", "", [])
    result = raced("step", (), [*starts, ("JAX", absent)], 4, 3, table)
    assert [rival.name for rival in result.rivals] == ["PyTorch compiled", "PyTorch eager"]
    assert [len(each.ms) for each in (result.mine, *result.rivals)] == [12, 12, 12]
    assert result.ratio == pytest.approx(1.4) and result.heats["slow"] == 16.0
    assert result.growth == dict.fromkeys([*times, "Chainrule"], 200.0) and result.page_faults == 3
    assert table.notes == ["Not measured: JAX: the package jax is not installed."]
    assert (Fake.most, Fake.open) == (3, 0)  # never more together than race


def test_without_a_peer_there_is_no_race() -> None:
    with pytest.raises(Unavailable, match="jax is not installed"):
        raced("step", (), [("JAX", absent)], 1, 1, Table("", "", []))


def test_the_headline_names_the_fastest() -> None:
    others = [Measured("PyTorch eager", [150.0]), Measured("PyTorch compiled, pages kept", [140.0])]
    row = headline("step", Measured("Chainrule", [100.0]), others)
    assert row == ("step", "100 ms", "PyTorch compiled, pages kept 140 ms (eager 150 ms)", "1.40")


def test_what_pytorch_reaches_with_all_of_mkl_is_a_row_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[Fake] = []

    def program(name: str, module: str, *_: object, **options: Any) -> Fake:
        assert ("LD_PRELOAD" in options.get("variables", {})) == (module == "benchmarks.peers.step_torch")
        programs.append(Fake(name, {"Chainrule": 10.0, "PyTorch eager": 14.0}.get(name, 12.0)))
        return programs[-1]

    monkeypatch.setattr(steps, "Program", program)
    races = {"a": steps.race_with_all_of_mkl("a", 2, quick=True)}
    assert [each.name for each in races["a"]] == ["Chainrule", "PyTorch eager", "PyTorch compiled"]
    assert (
        "| a | 10.0 ms (10.0 ms) | 14.0 ms (14.0 ms) | 12.0 ms (12.0 ms) | **1.20** |"
        in steps.unlocked_table(races)
    )
    assert steps.unlocked_row(races)[1:] == ("10.0 ms", "PyTorch 12.0 ms", "1.20")
    assert Fake.open == 0


@pytest.mark.parametrize(
    ("vendor", "flags", "locked"),
    [
        ("AuthenticAMD", {"avx512f"}, True),
        ("AuthenticAMD", {"avx2"}, False),
        ("GenuineIntel", {"avx512f"}, False),
    ],
)
def test_mkl_keeps_its_kernels_from_other_cpus(
    monkeypatch: pytest.MonkeyPatch, vendor: str, flags: set[str], locked: bool
) -> None:
    monkeypatch.setattr(steps, "cpu_flags", lambda: flags)
    monkeypatch.setattr(steps, "cpu_field", lambda name: vendor)
    assert steps.locked_mkl() == locked
