"""Diagnostics: a network and a checkpoint, with the numbers of the doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainrule.cli.commands.diagnose import of_run
from chainrule.lessons.initialization import deep_tanh


def test_a_network_has_the_numbers_of_the_lesson_and_of_the_program(ask: Any) -> None:
    found = ask("/api/diagnostics/network", depth=4, width=32, draw="no gain", lr=0.1)
    report = deep_tanh(4, 32, gain=False)
    assert [layer["value"]["std"] for layer in found["layers"]] == [
        layer.value.std for layer in report.layers
    ]
    names: dict[str, Any] = {}
    exec(found["python"], names)
    ratios = [each["update_ratio"] for each in found["parameters"]]
    assert ratios == [each.update_ratio for each in names["report"].parameters] and any(ratios)


@pytest.mark.parametrize(
    ("draw", "low", "high"), [("large", 0.5, 1.0), ("gain", 0.0, 0.2), ("small", 0.0, 0.001)]
)
def test_large_weights_saturate(ask: Any, draw: str, low: float, high: float) -> None:
    found = ask("/api/diagnostics/network", depth=3, width=64, draw=draw)
    assert low <= found["layers"][-1]["flat"] <= high


def test_normalization_keeps_the_spread(ask: Any) -> None:
    plain, normed = (
        ask("/api/diagnostics/network", depth=6, width=64, draw="small", norm=norm)["layers"][-1]["value"][
            "std"
        ]
        for norm in ("none", "batch")
    )
    assert plain < 1e-4 and normed > 0.5


def test_a_checkpoint(ask: Any, runs: Path) -> None:
    assert [each["name"] for each in ask("/api/diagnostics/about")["runs"]]
    found = ask("/api/diagnostics/run", run="one")
    title, step, report = of_run(runs / "one")
    assert found["title"] == f"{title}, after {step:,} steps"
    assert found["loss"] == report.loss
    assert [each["code"] for each in found["findings"]] == [each.code.value for each in report.findings]


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("network", {"depth": 0}, "depth is 0 (must be from 1 to 20)"),
        ("network", {"draw": "dice"}, "draw 'dice'"),
        ("network", {"activation": "none"}, "activation 'none'"),
        ("network", {"lr": 0}, "learning rate 0"),
        ("run", {"run": "nosuch"}, "nosuch"),
    ],
)
def test_refusals(ask: Any, path: str, asked: dict[str, Any], said: str) -> None:
    assert said in ask(f"/api/diagnostics/{path}", status=400, **asked)["error"]
