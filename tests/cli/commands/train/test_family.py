"""`chainrule train FAMILY` and `chainrule sample` for every family, for people and for machines."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from chainrule.cli import COMMANDS, main
from chainrule.cli.args.options import documented
from chainrule.cli.commands.train.family import command
from chainrule.data import load
from chainrule.models import FAMILIES
from chainrule.runs import Run, load_language_model
from chainrule.text import BPETokenizer

SMALL = {"n_layer": 1, "n_head": 2, "n_kv_head": 1, "n_embd": 16, "n_hidden": 16, "block_size": 16}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of our own with a text in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    Path("text.txt").write_text(load("pydoc").text[:5_000], encoding="utf-8")
    return tmp_path


def flags(family: str) -> list[str]:
    known = [f.name for f in fields(FAMILIES[family].config)]
    sizes = [f"--{name.replace('_', '-')}={n}" for name, n in SMALL.items() if name in known]
    return [*sizes, "--batch-size=4", "--max-steps=4"]


def test_every_family_has_its_command() -> None:
    assert {f"train {name}": (f"train.family:{name}", "") for name in FAMILIES}.items() <= COMMANDS.items()
    about = COMMANDS["train"][1]
    assert all(name in about for name in FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_size_is_a_flag_with_its_help(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = FAMILIES[family].config
    about = documented(config)
    assert about.keys() == {f.name for f in fields(config)}
    with pytest.raises(SystemExit):
        main(["train", family, "--help"])
    out = "".join(capsys.readouterr().out.split()).replace("│", "")
    without = {"vocab_size", "rope_scaling"}  # the data decide; no number or word, but an object
    for name, text in about.items():
        flag = f"--{name.replace('_', '-')}"
        assert (flag in out) == (name not in without)
        assert name in without or "".join(text.split()) in out
    made = command(family)()
    assert all(getattr(made.sizes, f.name) == f.default for f in fields(config) if f.name not in without)


@pytest.mark.parametrize("family", FAMILIES)
def test_train_and_sample(folder: Path, family: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", family, "text.txt", *flags(family), "--json"])
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert said.keys() >= {"run", "model", "parameters", "steps", "nats_per_token", "bits_per_byte"}
    assert (said["model"], said["steps"], said["run"]) == (family, 4, f"runs/{family}")
    assert "validation loss" in err
    assert (said["best_step"], said["best_loss"]) == (4, said["nats_per_token"])  # judged once, at the end
    model, _ = load_language_model(said["run"])
    assert model.count() == said["parameters"]

    texts = []
    for _ in range(2):
        main(["sample", said["run"], "--prompt", "The ", "--max-new-tokens", "30", "--seed", "3", "--json"])
        texts.append(json.loads(capsys.readouterr().out))
    assert texts[0] == texts[1] and texts[0]["prompt"] == "The " and len(texts[0]["text"]) == 30
    main(["sample", said["run"], "--prompt", "The ", "--max-new-tokens", "30", "--seed", "3"])
    assert capsys.readouterr().out == "The " + texts[0]["text"] + "\n"


def test_a_run_is_resumed_as_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gru", "text.txt", *flags("gru"), "--out", "run"])
    main(["train", "gru", "--resume", "run"])
    capsys.readouterr()
    for args, message in [
        (["train", "--resume", "run"], "run is a run of gru, not of gpt (resume with: "),
        (
            ["train", "gru", "--resume", "run", "--n-hidden", "8"],
            "--n-hidden is 8, in the run 16 (leave it out)",
        ),
        (["train", "lstm", "text.txt", "--n-hidden", "0"], "--n-hidden is 0 (must be at least 1)"),
        (
            ["train", "lstm", "text.txt", "--batch-size", "64"],
            "4500 tokens, --batch-size 64, --block-size 128",
        ),
    ]:
        with pytest.raises(SystemExit) as stop:
            main(args)
        assert stop.value.code == 2
        assert message in capsys.readouterr().err


def test_a_flag_that_says_the_default_must_agree_with_the_run_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--clip=2.0", "--no-batch-norm", "--n-layer=2"]
    main(["train", "mlp", "text.txt", *flags("mlp"), *settings, "--out", "run"])
    for given, message in [
        (["--clip", "1.0"], "resume: --clip is 1.0, in the run 2.0 (leave it out)"),
        (["--n-layer=1"], "resume: --n-layer is 1, in the run 2 (leave it out)"),
        (["--n_layer", "1"], "resume: --n-layer is 1, in the run 2 (leave it out)"),
        (["--batch-norm"], "resume: --batch-norm is True, in the run False (leave it out)"),
    ]:
        with pytest.raises(SystemExit):
            main(["train", "mlp", "--resume", "run", *given])
        assert message in capsys.readouterr().err
    main(["train", "mlp", "--resume", "run", *settings, "--seed", "0", "--tokenizer", "char"])


def test_a_tokenizer_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = BPETokenizer.train(Path("text.txt").read_text(encoding="utf-8"), 300)
    Path("bpe.json").write_text(json.dumps(tokenizer.to_dict()), encoding="utf-8")
    main(["train", "rnn", "text.txt", *flags("rnn"), "--tokenizer", "bpe.json", "--out", "run"])
    assert "nats = " in (out := capsys.readouterr().out) and "bits per byte" in out
    assert load_language_model("run")[1] == tokenizer
    main(["sample", "run", "--prompt", "é", "--max-new-tokens", "40", "--json"])
    assert len(json.loads(capsys.readouterr().out)["text"]) > 10
    main(["train", "rnn", "--resume", "run", "--tokenizer", "bpe.json"])
    Path("bpe.json").write_text(json.dumps(BPETokenizer.train("", 256).to_dict()), encoding="utf-8")
    capsys.readouterr()
    for args, message in [
        (
            ["train", "rnn", "--resume", "run", "--tokenizer", "bpe.json"],
            "tokenizer is bpe.json, the run has another",
        ),
        (
            ["train", "rnn", "--resume", "run", "--tokenizer", "char"],
            "tokenizer is char, the run has another",
        ),
        (["train", "rnn", "text.txt", "--tokenizer", "none.json"], "none.json: no such file"),
        (["train", "rnn", "text.txt", "--tokenizer", "text.txt"], "text.txt: "),
    ]:
        with pytest.raises(SystemExit) as stop:
            main(args)
        assert stop.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("family", FAMILIES)
def test_shards_from_build_to_sample(folder: Path, family: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "build", "text.txt", "--by", "paragraph", "--validation", "0.3", "--out", "shards"])
    capsys.readouterr()
    main(["train", family, "shards", *flags(family), "--out", "run"])
    out = capsys.readouterr().out
    assert f"tokens of {folder / 'shards'}; run run" in out and "bits per character after 4 steps" in out
    main(["sample", "run", "--max-new-tokens", "5", "--json"])
    assert len(json.loads(capsys.readouterr().out)["text"]) == 5
    main(["train", family, "shards", "--resume", "run"])
    main(["diagnose", "run"])


def test_shards_have_a_tokenizer_already(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "build", "text.txt", "--by", "paragraph", "--validation", "0.3", "--out", "shards"])
    main(["data", "build", "text.txt", "--by", "paragraph", "--out", "whole"])
    capsys.readouterr()
    for args, message in [
        (["shards", "--tokenizer", "char"], "tokenizer is char, shards has its own (leave it out)"),
        (["shards", "--tokenizer", "none.json"], "tokenizer is none.json, shards has its own (leave it out)"),
        (["whole"], "build them with --validation 0.05"),
    ]:
        with pytest.raises(SystemExit) as stop:
            main(["train", "gpt", *args])
        error = capsys.readouterr().err
        assert stop.value.code == 2 and message in error and error.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize("lines", [0, 1])
def test_a_run_is_saved_even_if_its_reader_leaves_at_once(tmp_path: Path, lines: int) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three. " * 200)
    command = [sys.executable, "-m", "chainrule.cli", "train", "ngram", str(text), "--max-steps", "600000"]
    reader = subprocess.Popen(
        [*command, "--out", str(tmp_path / "run")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert reader.stdout is not None
    for _ in range(lines):  # as `| head -1` does, or `| true`
        reader.stdout.readline()
    reader.stdout.close()
    assert reader.wait(60) == 141
    assert Run.resume(tmp_path / "run").trainer.steps > 0


def test_training_ends_saved_when_its_reader_has_gone(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three. " * 200)
    command = [sys.executable, "-m", "chainrule.cli", "train", "ngram", str(text), "--max-steps", "600000"]
    command += [
        "--eval-every",
        "1",
        "--save-every",
        "600000",
        "--keep",
        "last",
        "--out",
        str(tmp_path / "run"),
    ]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None and reader.stderr is not None
    while b"validation" not in reader.stdout.readline():
        pass
    reader.stdout.close()  # as `| head` does
    assert reader.stderr.read() == b""
    assert reader.wait(60) == 141
    assert Run.resume(tmp_path / "run").trainer.steps > 0
