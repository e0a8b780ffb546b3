"""`chainrule doctor RUN|DATA`, and the trials of `chainrule train`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.cli.render.trials import HEIGHT, WIDTH, curve
from chainrule.data import load
from chainrule.doctor import Code
from chainrule.runs import checkpoint
from chainrule.text import CharTokenizer

SMALL = ["--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4", "--lr=0.01"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(load("pydoc").text[:5_000], encoding="utf-8")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    main([*words, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_machine_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "doctor").keys() >= {"chainrule", "cpu", "native", "threads"}


def test_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "text.txt", *SMALL, "--max-steps=16", "--out=run"])
    assert "forecast: about" in capsys.readouterr().out
    findings = {f["code"]: f for f in run(capsys, "doctor", "run")["findings"]}
    assert {Code.WEIGHTS_OK} <= findings.keys() and findings[Code.WEIGHTS_OK]["level"] == "ok"
    assert {"splits", "loss curve", "weights"} <= {f["about"] for f in findings.values()}
    main(["doctor", "run"])
    out = capsys.readouterr().out
    assert "after 16 steps" in out and " diagnose run" in out and "ok       weights" in out


def test_a_run_that_has_hardly_begun_needs_steps_not_size(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "text.txt", *SMALL, "--max-steps=20", "--warmup=2", "--out=run"])
    for command in ("doctor", "diagnose"):
        capsys.readouterr()
        main([command, "run"])
        out = capsys.readouterr().out
        assert "more steps could learn more" in out and "a larger model" not in out


@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "model"],
        ["diagnose", "model"],
        ["replay", "model", "--step", "1"],
        ["train", "gpt", "--resume", "model"],
        ["doctor", "model/model.safetensors"],
    ],
)
def test_a_model_without_its_training_is_no_run(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    cr.io.save_pretrained(
        cr.models.make("gpt", n_layer=1, n_head=1, n_embd=4, vocab_size=3),
        CharTokenizer("abc"),
        Path("model"),
    )
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "a model without its training" in (err := capsys.readouterr().err) and "directory of a run" in err


def test_a_model_is_not_data(capsys: pytest.CaptureFixture[str]) -> None:
    Path("model").mkdir()
    Path("model/config.json").write_text("{}")
    with pytest.raises(SystemExit) as stop:
        main(["train", "gpt", "model"])
    assert stop.value.code == 2 and "model: a model, not data" in capsys.readouterr().err


def test_options_that_would_be_ignored_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    Path("run/log.jsonl").touch()
    for words, message in [
        (["doctor", "run", "--family=lstm"], "--family is given without data"),
        (["doctor", "run", "--text-column=a"], "--text-column is given without data"),
        (["doctor", "--family=lstm"], "--family is given without data"),
    ]:
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 2 and message in capsys.readouterr().err


def test_a_checkpoint_with_a_broken_weight(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "text.txt", *SMALL, "--max-steps=3", "--out=run"])
    saved = checkpoint.load(Path("run"))
    name = "transformer.h.0.mlp.c_proj.weight"
    broken = saved.model[name].copy()
    broken[1, 2] = np.inf  # stored (in, out), as GPT-2 does
    checkpoint.save(Path("run"), replace(saved, model={**saved.model, name: broken}))
    capsys.readouterr()
    findings = {f["code"]: f for f in run(capsys, "doctor", "run")["findings"]}
    assert findings[Code.WEIGHTS_NOT_FINITE]["measured"] == "h.0.mlp.c_proj.weight[2, 1] is inf"


def test_a_run_that_broke_down_before_its_first_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    rate = ["--lr=1e30", "--weight-decay=0", "--warmup=0"]
    with pytest.raises(SystemExit) as stop:
        main(["train", "gpt", "text.txt", *SMALL, *rate, "--max-steps=9", "--out=run"])
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert "error: train: loss" in error and "lr than 1e+30" in error and "in row" in error
    answer = run(capsys, "doctor", "run")
    (finding,) = (found for found in answer["findings"] if found["level"] == "problem")
    assert finding["code"].startswith("not_finite") and finding["measured"].startswith("step ")


def test_data(capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = CharTokenizer.train(load("pydoc").text[:5_000] + "".join(map(chr, range(0x4E00, 0x4E80))))
    Path("wide.json").write_text(json.dumps(tokenizer.to_dict()), encoding="utf-8")
    answer = run(capsys, "doctor", "text.txt", "--family=mlp", "--tokenizer=wide.json")
    findings = {f["code"]: f for f in answer["findings"]}
    assert findings[Code.UNUSED_TOKENS]["level"] == "note" and findings[Code.ONE_BATCH_OK]["level"] == "ok"
    assert findings.keys() >= {Code.TARGETS_OK, Code.VOCABULARY_OK, Code.INITIAL_LOSS_OK, Code.FORECAST}


def test_what_is_neither(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "nowhere"])
    assert stop.value.code == 2 and "nowhere" in capsys.readouterr().err


def test_one_batch(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "text.txt", *SMALL, "--overfit"])
    assert "ok       one batch: loss" in capsys.readouterr().out
    assert not Path("runs").exists()
    with pytest.raises(SystemExit) as stop:
        main(["train", "gpt", "text.txt", *SMALL, "--lr=1e-9", "--overfit", "--json"])
    assert stop.value.code == 1 and json.loads(capsys.readouterr().out)["level"] == "problem"


def test_find_lr(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "text.txt", *SMALL, "--find-lr"])
    out = capsys.readouterr().out
    assert "try: --lr 0." in out and "•" in out and not Path("runs").exists()
    answer = run(capsys, "train", "gpt", "text.txt", *SMALL, "--find-lr")
    assert f"try: --lr {answer['lr']:g} " in out and len(answer["rates"]) == len(answer["losses"])


def test_a_curve_in_text() -> None:
    lines = curve([4.0] * 30 + [1.0] * 30, ceiling=3.0)
    assert len(lines) == HEIGHT and lines[0] == f"{3.0:8.3f} " + "•" * 30
    assert lines[-1] == f"{1.0:8.3f} " + " " * 30 + "•" * 30 and WIDTH == 60


def test_a_family_that_is_not_known_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "pydoc", "--family", "lstmm"])
    assert "--family is 'lstmm' (must be one of gpt, " in (err := capsys.readouterr().err)
    assert err.endswith("; did you mean lstm?)\n")


@pytest.mark.parametrize("family", ["word2vec", "skip-gram", "cbow"])
def test_a_family_without_batches_is_refused(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "pydoc", "--family", family])
    assert stop.value.code == 2
    assert f"doctor: --family is '{family}' (must be one of gpt, " in capsys.readouterr().err
