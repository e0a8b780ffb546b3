"""What a person may get wrong with `chainrule train` and its runs: one line, with the value, the rule and the fix."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.cli.render import progress
from chainrule.data import load, shards
from chainrule.runs import Run

TINY = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--batch-size", "4"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of our own with a text in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    Path("text.txt").write_text(load("pydoc").text[:5_000], encoding="utf-8")


def train(*words: str, family: str = "gpt") -> None:
    main(["train", family, "text.txt", *TINY, "--max-steps", "2", *words])


@pytest.fixture
def gpt(capsys: pytest.CaptureFixture[str]) -> None:
    train("--out", "gpt")
    capsys.readouterr()


def refused(*words: str, capsys: pytest.CaptureFixture[str], alone: bool = True, code: int = 2) -> str:
    """What is said, one line; `alone` if nothing else is said before."""
    with pytest.raises(SystemExit) as stop, np.errstate(all="ignore"):
        main(list(words))
    out, err = capsys.readouterr()
    assert stop.value.code == code and err.count("\n") == 1 and not (alone and out), (out, err)
    return err


def test_a_weight_decay_that_takes_more_than_all(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "gpt", "text.txt", *TINY, "--weight-decay", "1e10", "--out", "run"]
    err = refused(*words, capsys=capsys)
    assert "--lr is 0.003, --weight-decay 1e+10 (their product must be below 1" in err
    assert not Path("run").exists()


def test_a_run_whose_last_step_breaks_the_weights_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    rate = ["--lr", "1e39", "--weight-decay", "0", "--warmup", "0", "--max-steps", "1", "--out", "run"]
    err = refused("train", "gpt", "text.txt", *TINY, *rate, capsys=capsys, alone=False, code=1)
    assert "after step 1 (must be finite): try a smaller --lr than 1e+39" in err and "--resume run" in err
    assert [path.name for path in Path("run/checkpoints").iterdir()] == ["step_000000"]


@pytest.mark.usefixtures("gpt")
def test_broken_weights_are_named_by_whoever_would_use_them(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.resume("gpt")
    run.model.h[0].mlp.c_proj.weight.array[2, 1] = np.inf
    run.save()
    told = "gpt: h.0.mlp.c_proj.weight[2, 1] is inf (weights must be finite: "
    for words in (["eval", "gpt"], ["export", "gpt", "--out", "there"]):
        assert told in refused(*words, capsys=capsys)
    told = "gpt: h.0.mlp.c_proj.weight: 1 of 1,024 values are NaN or infinite (must be none: "
    assert told in refused("sample", "gpt", capsys=capsys)
    assert not Path("there").exists()


@pytest.mark.usefixtures("gpt")
def test_a_run_goes_on_with_its_own_weights(capsys: pytest.CaptureFixture[str]) -> None:
    err = refused("train", "gpt", "--resume", "gpt", "--init", "other", capsys=capsys)
    assert "--init is other, the run in gpt continues with its own weights (leave out one of the two)" in err
    main(["train", "gpt", "text.txt", "--init", "gpt", "--max-steps", "1", "--out", "b"])
    main(["train", "gpt", "--resume", "b", "--config", "b/config.toml"])  # as it began: no contradiction
    assert "the run is finished" in capsys.readouterr().out


@pytest.mark.usefixtures("gpt")
def test_weights_that_were_trained_are_not_taken_for_new_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """They know what is to be learned, and the tokens that do not occur in this text are their own."""
    run = Run.resume("gpt")
    Path("one.txt").write_text("ab" * 2_000)
    for text, finding in (("text.txt", "initial loss"), ("one.txt", "unused tokens")):
        run.model.ln_f.bias.array[:] = run.model.wte.weight.array[0] * 1e4  # sure of something
        run.save()
        main(["train", "gpt", text, "--init", "gpt", "--max-steps", "1", "--out", f"from-{text}"])
        out = capsys.readouterr().out
        assert "forecast" in out and finding not in out and "problem: initial" not in out


@pytest.mark.parametrize(
    ("family", "data", "wanted"),
    [
        ("llama", "text.txt", "those of a llama"),
        ("bert-classifier", "docstrings", "a model with a BERT inside"),
    ],
)
@pytest.mark.usefixtures("gpt")
def test_weights_of_another_family(
    family: str, data: str, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    err = refused("train", family, data, "--init", "gpt", capsys=capsys)
    rule = f"must be {wanted}; what they fit is train gpt"
    assert f"a {family} cannot begin with the weights of a gpt ({rule})" in err


def test_a_text_of_one_letter(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("a" * 10_000)
    err = refused("train", "gpt", "a.txt", *TINY, "--out", "run", capsys=capsys)
    assert "a.txt: a vocabulary of one token, 'a' (must be at least two" in err


@pytest.mark.usefixtures("gpt")
def test_the_settings_of_an_extended_run_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    before = tomllib.loads(Path("gpt/config.toml").read_text())
    main(["train", "gpt", "--resume", "gpt", "--max-steps", "3", "--lr", "1e-3", "--find-lr"])
    assert tomllib.loads(Path("gpt/config.toml").read_text()) == before  # a trial writes nothing
    main(["train", "gpt", "--resume", "gpt", "--max-steps", "3", "--lr", "1e-3"])
    after = tomllib.loads(Path("gpt/config.toml").read_text())
    assert after == before | {"max_steps": 3, "lr": 1e-3}
    main(["train", "gpt", "--config", "gpt/config.toml", "--out", "again"])
    assert "after 3 steps" in capsys.readouterr().out


@pytest.mark.usefixtures("gpt")
def test_a_text_too_short_to_judge_by(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("a")
    err = refused("eval", "gpt", "a.txt", capsys=capsys)
    assert "validation text: 1 token (must be at least 2" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--block-size", "10000000"], "training text: 4,500 tokens, --block-size 10000000 (must have more"),
        (["--batch-size", "100000000"], "--batch-size is 100000000, --block-size 16: a step takes "),
        (["--batch-size", "100000000", "--recompute"], "--batch-size is 100000000, --block-size 16: a step"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_model_is_made(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("chainrule.tasks.setup.make")
    assert message in refused("train", "gpt", "text.txt", *TINY, *words, "--out", "run", capsys=capsys)
    assert not Path("run").exists()


def test_memory_that_is_not_there_is_named_without_shapes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(*_: object, **__: object) -> None:
        np.empty(1 << 58, np.uint8)

    monkeypatch.setattr("chainrule.tasks.setup.make", greedy)
    err = refused("train", "gpt", "text.txt", *TINY, "--out", "run", capsys=capsys)
    assert err == (
        "error: not enough memory: 256 PiB more were asked for (make the model, the batch or the context smaller)\n"
    )


def test_one_is_no_plural(capsys: pytest.CaptureFixture[str]) -> None:
    train("--n-head", "1", "--max-steps", "1", "--out", "run")
    out = capsys.readouterr().out
    assert "GPT with 1 layer, 1 head, width 16" in out and "after 1 step\n" in out


def test_a_report_of_a_run_on_a_budget_names_no_steps_that_were_not_planned() -> None:
    train("--budget", "0.05", "--out", "run")
    main(["runs", "report", "run"])
    page = Path("run/report.html").read_text()
    assert "budget" in page and "max_steps" not in page


def test_a_batch_of_hidden_words_that_does_not_fit_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("chainrule.tasks.setup.make")
    words = [*TINY, "--batch-size", "100000000", "--out", "run"]
    err = refused("train", "bert", "text.txt", *words, capsys=capsys)
    assert "--batch-size is 100000000, --block-size 16: a step takes " in err and not Path("run").exists()


def test_shards_are_read_to_the_end_while_progress_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And damaged ones are refused before there is a directory."""
    monkeypatch.chdir(tmp_path)
    Path("n.txt").write_text("\n".join(map(str, range(3000))))
    main(["data", "build", "n.txt", "--by", "line", "--validation", "0.1", "--out", "shards"])
    sums = shards._sums

    def slow(path: Path) -> Any:
        time.sleep(0.05)
        return sums(path)

    monkeypatch.setattr(shards, "_sums", slow)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "PLAIN", 0.01)
    train = ["train", "gpt", "shards", "--n-layer=1", "--n-embd=8", "--n-head=1", "--block-size=8"]
    main([*train, "--max-steps", "1", "--batch-size", "2", "--out", "run"])
    assert capsys.readouterr().err.count("reading: ") >= 3
    content = bytearray(Path("shards/train.npy").read_bytes())
    content[-1] ^= 1
    Path("shards/train.npy").write_bytes(content)
    with pytest.raises(SystemExit) as stop:
        main([*train, "--out", "other"])
    assert stop.value.code == 2 and "train.npy: is damaged" in capsys.readouterr().err
    assert not Path("other").exists()
