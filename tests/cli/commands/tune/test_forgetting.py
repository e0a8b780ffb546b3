from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli.main import main
from tests.runs.tuned.test_keeping import folder  # noqa: F401  a base and a task that it must learn anew

STEPS = [
    "--max-steps",
    "20",
    "--batch-size",
    "8",
    "--eval-windows",
    "8",
    "--eval-every",
    "5",
    "--warmup",
    "2",
]


def test_every_remedy_is_a_run_and_a_point_of_the_picture(
    folder: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "forgetting"
    words = [str(folder / "base"), str(folder / "new.txt"), *STEPS, "--out", str(out), "--rank", "2"]
    main(["tune", "forgetting", *words, "--json"])
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["outcomes"]}
    assert list(found) == ["full", "lower rate", "early stopping", "pull", "replay", "lora"]
    for name, each in found.items():
        assert (out / name.replace(" ", "-") / "log.jsonl").exists()
        assert each["gain"] == pytest.approx(each["task_before"] - each["task_after"])
        assert each["rise"] == pytest.approx(each["general_after"] - each["general_before"])
        assert each["gain"] > 0 and each["step"] > 0, name
    assert all(found[name]["rise"] < found["full"]["rise"] for name in found if name != "full")
    assert found["early stopping"]["rise"] <= 0.1
    assert (out / "forgetting.png").stat().st_size > 10_000
    main(["tune", "forgetting", *words])  # what is done is read, not trained again
    assert "early stopping" in capsys.readouterr().out


def test_an_old_task_is_needed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    import chainrule as cr

    model, tokenizer = cr.load(folder / "base")
    cr.io.save_pretrained(model, tokenizer, tmp_path / "plain")
    with pytest.raises(SystemExit):
        main(
            [
                "tune",
                "forgetting",
                str(tmp_path / "plain"),
                str(folder / "new.txt"),
                "--out",
                str(tmp_path / "out"),
            ]
        )
    assert "the old task" in capsys.readouterr().err
