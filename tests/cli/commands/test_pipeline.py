"""`chainrule pipeline`: what is said when it is interrupted."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from chainrule.cli.main import main
from chainrule.pipeline import QUICK, stages


def test_an_interrupted_pipeline_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(stages, "compare_answers", interrupt)
        with pytest.raises(SystemExit) as left:
            main(["pipeline", "--quick", "--out", "my runs", "--ppo-steps", "2"])
    assert left.value.code == 130
    said = capsys.readouterr().err.strip().splitlines()[-1]
    words = shlex.split(said.partition("continue with: ")[2])
    words = words[words.index("pipeline") :]
    assert words == ["pipeline", "--quick", "--ppo-steps", "2", "--out", "my runs"]
    main(words)
    assert "6-dpo" in capsys.readouterr().out and QUICK.ppo_steps != 2
