from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli.main import main
from tests.runs.helpers import new_run

STEPS = [
    "--max-steps",
    "3",
    "--batch-size",
    "2",
    "--eval-every",
    "3",
    "--save-every",
    "3",
    "--eval-windows",
    "2",
]
IDS = np.arange(12)[None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("merge")
    new_run(made, "base", max_steps=4).train()
    for method in ("lora", "bitfit", "adapter", "full"):
        words = ["--method", method, "--lr", "1e-2", "--out", str(made / method)]
        main(["tune", str(made / "base"), str(made / "text.txt"), *STEPS, *words])
    return made


@pytest.mark.parametrize("method", ["lora", "bitfit"])
def test_a_merged_model_is_a_plain_one_that_says_the_same(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    capsys.readouterr()
    main(["merge", str(folder / method), "--out", str(tmp_path / "plain"), "--verify", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert 0 <= found["logit_difference"] <= 1e-5 < found["logits"] and found["changed"] > 0
    plain, _ = cr.load(tmp_path / "plain")
    assert list(plain.state()) == list(cr.load(folder / "base")[0].state())
    np.testing.assert_allclose(
        plain(IDS).numpy(), cr.load(folder / method)[0](IDS).numpy(), rtol=0, atol=1e-5
    )
    main(["merge", str(folder / method), "--out", str(tmp_path / "again"), "--verify"])
    assert "largest logit difference" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("lora/checkpoints/step_000000", "changes no weight of its base (must change some: train it first"),
        ("adapter", "is an Adapted (must be LoRA"),
        ("full", "holds whole weights, no adapter (export writes them as they are)"),
        ("base", "holds whole weights, no adapter"),
    ],
)
def test_nothing_to_merge_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, message: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["merge", str(folder / path), "--out", str(tmp_path / "plain")])
    assert stopped.value.code == 2 and message in capsys.readouterr().err
    assert not (tmp_path / "plain").exists()
