"""Runs that go on, from the command line: which may, which may not, and what is said."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.data import load
from chainrule.errors import ChainruleError
from chainrule.runs import Run, checkpoint
from chainrule.train import Trainer, WordVectorStep
from chainrule.train.log import read

SMALL = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--batch-size", "4"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of our own with a text in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    Path("text.txt").write_text(load("pydoc").text[:60_000], encoding="utf-8")


@pytest.fixture
def gpt(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "text.txt", *SMALL, "--max-steps", "2", "--save-every", "1", "--out", "gpt"])
    capsys.readouterr()


@pytest.fixture
def words(capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["train", "word2vec", "text.txt", "--dim", "8", "--epochs", "2", "--min-count", "6", "--out", "words"]
    )
    capsys.readouterr()


def refused(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and err.count("\n") == 1
    return err


@pytest.mark.usefixtures("gpt")
def test_what_changes_no_bit_may_change() -> None:
    main(["train", "gpt", "--resume", "gpt", "--no-compile", "--max-steps", "6"])
    main(["train", "gpt", "text.txt", *SMALL, "--max-steps", "2", "--save-every", "1", "--out", "other"])
    main(["train", "gpt", "--resume", "other", "--max-steps", "6"])
    runs = [Run.resume(Path(name)) for name in ("gpt", "other")]
    assert [run.trainer.config.compile for run in runs] == [False, True]
    one, other = (run.model.parameters().data for run in runs)
    assert one.tobytes() == other.tobytes()


@pytest.mark.usefixtures("gpt")
def test_a_finished_run_says_so_and_can_be_extended(capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("gpt/log.jsonl").read_bytes()
    main(["train", "gpt", "--resume", "gpt"])
    out = capsys.readouterr().out
    assert (
        "the run is finished, at step 2: it is evaluated again" in out
        and "train gpt --resume gpt --max-steps 4" in out
    )
    assert "validation loss" in out and Path("gpt/log.jsonl").read_bytes() == before
    main(["train", "gpt", "--resume", "gpt", "--max-steps", "4"])
    out = capsys.readouterr().out
    assert "new plan: 4 steps" in out and "from step 2 to step 4; learning rate now" in out
    assert [record["step"] for record in read(Path("gpt/log.jsonl")) if "loss" in record] == [1, 2, 3, 4]
    assert checkpoint.load(Path("gpt")).training["train"]["max_steps"] == 4
    err = refused("train", "gpt", "--resume", "gpt", "--max-steps", "3", capsys=capsys)
    assert "--max-steps is 3, in the run 4 (must be larger)" in err


def test_after_a_nan_the_command_that_is_named_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["text.txt", *SMALL, "--max-steps", "4", "--warmup", "0", "--lr", "1e30", "--out", "gpt"]
    with np.errstate(all="ignore"), pytest.raises(SystemExit):
        main(["train", "gpt", *words, "--weight-decay", "0"])
    err = capsys.readouterr().err
    told = re.search(
        r"resume from the last checkpoint with: .*(train gpt --resume gpt --lr) 1e\+29$", err.strip()
    )
    assert told and err.count("\n") == 1
    main([*told[1].split(), "1e-3", "--on-nan", "skip", "--eval-every", "2", "--save-every", "1"])
    kept = checkpoint.load(Path("gpt"))
    assert kept.step == 4
    names = ("lr", "on_nan", "eval_every", "save_every", "batch_size")
    assert [kept.training["train"][name] for name in names] == [1e-3, "skip", 2, 1, 4]
    rates = [record["lr"] for record in read(Path("gpt/log.jsonl")) if "loss" in record]
    assert len(rates) == 4 and max(rates) == 1e-3


@pytest.mark.usefixtures("gpt")
def test_patience_can_change_and_the_rest_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    resume = ["train", "gpt", "--resume", "gpt"]
    main([*resume, "--max-steps", "4", "--patience", "3", "--eval-every", "1"])
    assert checkpoint.load(Path("gpt")).training["train"]["patience"] == 3
    main([*resume, "--max-steps", "6", "--patience", "0"])
    assert checkpoint.load(Path("gpt")).training["train"]["patience"] == 0
    capsys.readouterr()
    for flags in (["--warmup", "7"], ["--batch-size", "8"], ["--beta2", "0.5"]):
        assert "(leave it out)" in refused(*resume, *flags, capsys=capsys)


@pytest.mark.usefixtures("gpt", "words")
def test_a_text_that_is_gone_and_a_folder_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert "(must be the directory of a run, such as gpt)" in refused("sample", ".", capsys=capsys)
    assert "--budget is 3.0, in the run none" in refused(
        "train", "--resume", "gpt", "--budget", "3", capsys=capsys
    )
    Path("text.txt").unlink()
    for family, run in (("gpt", "gpt"), ("word2vec", "words")):
        err = refused("train", family, "--resume", run, capsys=capsys)
        assert f"{run}: the text of the run is not there: " in err and "no such file" in err


@pytest.mark.usefixtures("gpt", "words")
def test_a_run_of_another_kind_is_named_with_what_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    vectors = "words: holds word vectors (skip-gram), not a model of text"
    for args in (["sample", "words"], ["diagnose", "words"], ["train", "gpt", "--resume", "words"]):
        err = refused(*args, capsys=capsys)
        assert vectors in err and "chainrule vectors" in err and "chainrule train word2vec --resume" in err
    model = "gpt: holds a model of text (gpt), not word vectors"
    for args in (["vectors", "gpt", "the"], ["train", "word2vec", "--resume", "gpt"]):
        err = refused(*args, capsys=capsys)
        assert model in err and "chainrule sample" in err and "chainrule train gpt --resume" in err
    err = refused("train", "mlp", "--resume", "gpt", capsys=capsys)
    assert "gpt is a run of gpt, not of mlp (resume with:" in err and "train gpt --resume gpt)" in err


@pytest.mark.usefixtures("gpt")
def test_a_damaged_checkpoint_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    newest = Path("gpt/checkpoints/step_000002")
    (newest / "model.safetensors").write_bytes(b"")
    err = refused("sample", str(newest), capsys=capsys)
    assert "is damaged, its 0 bytes do not have the hash in manifest.json" in err
    main(["train", "gpt", "--resume", "gpt"])
    said = capsys.readouterr()
    assert "from step 1 to step 2" in said.out
    assert said.err.startswith("warning: ") and "taking step_000001 instead" in said.err
    main(["sample", str(newest), "--max-new-tokens", "5"])  # mended by making the step again
    capsys.readouterr()
    for file in Path("gpt/checkpoints").glob("*/model.safetensors"):
        file.write_bytes(b"")
    err = refused("train", "gpt", "--resume", "gpt", capsys=capsys)
    assert "there is no good one before it (bring back a copy, or begin a new run)" in err


@pytest.mark.usefixtures("words")
def test_word_vectors_go_on_with_their_own_settings_only(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.txt").write_text("To be, or not to be")
    for flags, message in [
        (["--dim", "100"], "--dim is 100, in the run 8 (leave it out)"),  # the default, but said
        (["--epochs", "5"], "--epochs is 5, in the run 2 (leave it out)"),
        (["--min-count", "5"], "--min-count is 5, in the run 6 (leave it out)"),
        (["--model", "cbow"], "--model is cbow, in the run skip-gram (leave it out)"),
        (["--out", "elsewhere"], "--out is elsewhere, the run is in words (leave it out)"),
        (["other.txt"], "data is other.txt, in the run "),
    ]:
        assert message in refused("train", "word2vec", "--resume", "words", *flags, capsys=capsys)
    main(["train", "word2vec", "text.txt", "--resume", "words", "--dim", "8"])  # the same: agreed
    assert "the run is finished: all its 2 epochs are done" in capsys.readouterr().out


@pytest.mark.parametrize("epoch", [0, 1])
def test_interrupted_word_vectors_say_how_to_go_on(
    epoch: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = WordVectorStep.read

    def interrupted(self: WordVectorStep, number: int) -> object:
        if number == epoch:
            os.kill(os.getpid(), signal.SIGINT)
        return read(self, number)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr(WordVectorStep, "read", interrupted)
        patch.setattr("chainrule.train.word_vectors.trainer.PASSAGE", 1000)
        main(["train", "word2vec", "text.txt", "--dim", "8", "--epochs", "3", "--json"])
    out, err = capsys.readouterr()
    assert stop.value.code == 130 and json.loads(out)["interrupted"]
    if epoch == 0:
        assert "interrupted in the first epoch: nothing is kept" in err and not Path("runs/word2vec").exists()
        return
    told = re.search(r"interrupted; resume with: .*(train word2vec --resume \S+)", err)
    assert told
    main(told[1].split())
    assert Run.resume("runs/word2vec", word_vectors=True).finished


def test_a_run_that_never_began_is_begun_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: WordVectorStep) -> float:
        raise KeyboardInterrupt

    train = ["train", "word2vec", "text.txt", "--dim", "8", "--epochs", "1", "--out", "words"]
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(
            WordVectorStep, "loss", interrupted
        )  # before the first epoch, after the directory is made
        main(train)
    with pytest.raises(SystemExit):
        main(["train", "word2vec", "--resume", "words"])
    assert "words: stopped before its first checkpoint (begin it again, without" in capsys.readouterr().err
    main(train)
    assert Run.resume("words", word_vectors=True).finished
    with pytest.raises(SystemExit):
        main(train)
    assert "words: the directory is not empty" in capsys.readouterr().err


def test_a_plan_on_a_budget_can_be_extended_by_steps(capsys: pytest.CaptureFixture[str]) -> None:
    main(
        [
            "train",
            "mlp",
            "text.txt",
            "--budget",
            "0.1",
            "--warmup",
            "1",
            "--eval-windows",
            "8",
            "--out",
            "run",
        ]
    )
    done = checkpoint.load(Path("run")).step
    main(["train", "mlp", "--resume", "run", "--max-steps", str(done + 2)])
    assert checkpoint.load(Path("run")).step == done + 2
    assert f"to step {done + 2:,};" in capsys.readouterr().out


@pytest.mark.parametrize("done", [0, 3])
def test_a_failure_before_the_first_step_leaves_no_directory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    """A later one leaves the run, to be looked at and to go on."""
    update = Trainer.update

    def fails(self: Trainer, lr: float) -> tuple[float, float]:
        if self.steps == done:
            raise ChainruleError("no more")
        return update(self, lr)

    monkeypatch.setattr(Trainer, "update", fails)
    with pytest.raises(SystemExit) as stop:
        main(["train", "gpt", "text.txt", *SMALL, "--max-steps", "9", "--out", "run"])
    assert stop.value.code == 2 and "no more" in capsys.readouterr().err
    assert Path("run").exists() == (done > 0)


def test_a_run_that_patience_ended_goes_on_as_advised(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([1.0, 2.0, 3.0, 0.5, 4.0])
    monkeypatch.setattr(Trainer, "evaluate", lambda self: next(found))
    often = ["--max-steps", "10", "--eval-every", "2", "--patience", "1"]
    main(["train", "gpt", "text.txt", *SMALL, *often, "--out", "run"])
    assert "best at step 2, 1.0000 nats" in capsys.readouterr().out
    main(["train", "gpt", "--resume", "run"])
    assert (
        "finished, at step 4 of 10 planned: " in (out := capsys.readouterr().out)
        and "--max-steps 20\n" in out
    )
    main(["train", "gpt", "--resume", "run", "--max-steps", "20"])
    assert "best at step 6, 0.5000 nats" in capsys.readouterr().out


def test_the_best_of_an_interrupted_run_is_that_of_its_evaluations(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last loss is measured when it has stopped, and may be lower."""
    update, found = Trainer.update, iter([2.0, 1.0])

    def interrupted(self: Trainer, lr: float) -> tuple[float, float]:
        if self.steps == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(self, lr)

    monkeypatch.setattr(Trainer, "update", interrupted)
    monkeypatch.setattr(Trainer, "evaluate", lambda self: next(found))
    with pytest.raises(SystemExit):
        main(["train", "gpt", "text.txt", *SMALL, "--max-steps", "9", "--eval-every", "2", "--out", "run"])
    out = capsys.readouterr().out
    assert "validation loss 1.0000" in out and "best of the evaluations at step 2, 2.0000 nats" in out
