"""The report of a pipeline, by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.cli.main import main
from chainrule.pipeline.compare import WinRate, wilson
from chainrule.pipeline.rule import score


@pytest.mark.requirement("R-407")
def test_the_command_writes_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["pipeline", "--quick", "--out", str(tmp_path / "run"), "--ppo-steps", "2"])
    page = (tmp_path / "run" / "report.md").read_text("utf-8")
    assert capsys.readouterr().out.endswith("report.md\n")
    for stage in ("1-pretrain", "2-continue", "3-instruct", "4-reward", "5-ppo", "6-dpo"):
        assert f"| `{stage}` |" in page
    assert page.count("% to ") == 2 and "- `5-ppo`: `" in page


def test_intervals_and_the_rule() -> None:
    rate = WinRate(wins=60, ties=20, losses=20)
    assert rate.rate == 0.7 and rate.interval == pytest.approx((0.604, 0.781), abs=1e-3)
    assert wilson(0.0, 0) == (0.0, 1.0) and wilson(0.0, 20)[0] == 0.0
    texts = (("Return it", True), ("Return", False), ("It.", True), ("..", False), ("", True))
    assert [score(text, ended=end) for text, end in texts] == pytest.approx([4.0, 3.0, 1 + 2 / 3, 0.0, 0.0])
