"""`--seeds` by command, and one validation loss in every command."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.runs import Run
from tests.cli.commands.train.test_family_tasks import refused, result

TINY = ["--n-layer", "1", "--n-head", "2", "--n-embd", "8", "--block-size", "16", "--batch-size", "4"]
SHORT = [*TINY, "--max-steps", "4", "--eval-windows", "8"]


@pytest.fixture(autouse=True)
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text("".join(f"{n} green bottles, and one more is {n + 1}.\n" for n in range(300)))


def test_seeds_give_a_mean_and_a_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(
        "train", "gpt", "book.txt", *SHORT, "--seeds", "3", "--seed", "5", "--out", "g", capsys=capsys
    )
    assert sorted(path.name for path in Path("g").iterdir()) == ["seed-5", "seed-6", "seed-7"]
    losses = [each["validation"] for each in found["runs"].values()]
    assert len(set(losses)) == 3
    assert found["mean"]["validation"] == pytest.approx(statistics.mean(losses))
    assert found["standard_error"]["validation"] == pytest.approx(statistics.stdev(losses) / 3**0.5)
    alone = result("train", "gpt", "book.txt", *SHORT, "--seed", "6", "--out", "one", capsys=capsys)
    assert alone["nats_per_token"] == found["runs"]["g/seed-6"]["validation"]
    shutil.rmtree("g/seed-6")  # as if it had not been reached
    main(["train", "gpt", "--resume", "g", "--seeds", "3"])
    said = capsys.readouterr().out
    mean = f"{found['mean']['validation']:.4f} ± {found['standard_error']['validation']:.4f}"
    assert "3 seeds in g, mean ± standard error" in said and mean in said
    main(["runs", "compare", "g", "one"])
    said = capsys.readouterr().out
    assert re.search(r"seed +5, 6, 7 +6\n", said) and re.search(
        r"best validation +[\d.]+ ± [\d.]+ +[\d.]+\n", said
    )
    main(["runs", "compare", "g/seed-5", "g/seed-7", "--json"])
    (group,) = json.loads(capsys.readouterr().out)["seeds"]
    assert group["runs"] == ["g/seed-5", "g/seed-7"]
    assert group["validation"]["mean"] == pytest.approx((losses[0] + losses[2]) / 2)


def test_a_seed_that_diverges_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = Run.train

    def spoiled(run: Run, *args: Any) -> Any:
        if run.trainer.config.seed == 6:
            run.model.ln_f.weight.array[:] = np.inf
        return train(run, *args)

    monkeypatch.setattr(Run, "train", spoiled)
    three = ["train", "gpt", "book.txt", *SHORT, "--seeds", "3", "--seed", "5"]
    for words in (["--out", "g"], ["--out", "h", "--json"]):
        with pytest.raises(SystemExit) as stop:
            main([*three, *words])
        out, err = capsys.readouterr()
        assert stop.value.code == 1
        assert "error: train: of 3 seeds diverged 6; 6: " in err and " --lr " in err
        assert "seed 6 diverged; the others are trained all the same\n" in (err if "--json" in words else out)
        if "--json" in words:
            found = json.loads(out)
            assert found["diverged"] == [6] and [*found["runs"]] == ["h/seed-5", "h/seed-7"]
        else:
            assert "2 seeds in g, mean ± standard error" in out
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "0"], "--seeds is 0 (must be at least 1)"),
        (["--seeds", "2", "--find-lr"], "--seeds is given with --find-lr"),
    ],
)
def test_seeds_that_make_no_sense(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused("train", "gpt", "book.txt", *words, capsys=capsys)


def test_train_eval_and_diagnose_print_the_same_loss(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "book.txt", *TINY, "--max-steps", "4", "--eval-windows", "1000", "--out", "all"])
    loss = re.search(r"validation loss (\d\.\d{4}) nats = [^\n]* after 4 steps\n", capsys.readouterr().out)
    assert loss
    main(["eval", "all"])
    said = capsys.readouterr().out
    assert re.search(rf"nats_per_token +{loss[1]}\n", said) and re.search(
        r"evaluated +all \d+ windows\n", said
    )
    main(["diagnose", "all"])
    assert re.search(rf"validation {loss[1]} nats on all \d+ windows", capsys.readouterr().out)


def test_a_loss_on_some_windows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "book.txt", *SHORT, "--out", "some"])
    found = re.search(
        r"validation loss (\d\.\d{4}) nats .* after 4 steps, on (8 of \d+ windows)\n", capsys.readouterr().out
    )
    assert found
    main(["diagnose", "some"])
    assert f"validation {found[1]} nats on {found[2]}" in capsys.readouterr().out
    main(["eval", "some", "--limit", "8"])
    said = capsys.readouterr().out
    assert found[2] in said and re.search(rf"nats_per_token +{found[1]}\n", said)
