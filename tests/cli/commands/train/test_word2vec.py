"""`chainrule train word2vec` and `chainrule vectors` as a person meets them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.data import load
from chainrule.errors import CheckpointError, ConfigError
from chainrule.files import alone
from chainrule.io.vectors import read_vectors
from chainrule.runs import Run, checkpoint, load_vectors
from chainrule.train import WordTrainConfig, log

SMALL = ["--dim", "8", "--epochs", "2"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    Path("text.txt").write_text(load("pydoc").text[:60_000], encoding="utf-8")
    return tmp_path


def test_train_and_ask(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "word2vec", "text.txt", *SMALL])
    out, err = capsys.readouterr()
    assert err == "" and re.search(r"loss 4\.159 -> [1-3]\.\d+ nats per pair at [\d,]+ words/s", out)
    words, matrix = read_vectors("runs/word2vec/vectors.txt")
    assert words[0] == "the" and "<unk>" not in words and matrix.shape == (len(words), 8)
    assert load_vectors("runs/word2vec")[0] == words
    np.testing.assert_array_equal(load_vectors("runs/word2vec")[1], matrix)
    assert [record["step"] for record in log.read(Path("runs/word2vec/log.jsonl"))] == [1, 2]

    told = re.search(r"(vectors runs/word2vec .*)", out)  # what to try next
    assert told
    main([*shlex.split(told[1]), "--n", "3"])
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_questions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("v.txt").write_text("4 2\nking 1 1\nqueen 1 -1\nman 0.2 1\nwoman 0.2 -1\n")
    Path("pairs.txt").write_text("king queen 3\nking man 9\nman woman 1\npope king 1\n")
    Path("analogies.txt").write_text(": family\nman woman king queen\n")
    main(["vectors", "v.txt", "king", "man", "--analogy", "king", "man", "woman", "--eval", "pairs.txt"])
    out = capsys.readouterr().out
    assert "cosines" in out and "king - man + woman\n" in out
    assert "Spearman 1.0000 on 3 pairs, 1 with unknown words" in out
    main(["vectors", "v.txt", "king", "--eval", "analogies.txt", "--n", "1", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["neighbours"]["king"][0][0] == "man"
    assert report["evaluation"]["accuracy"] == 1.0
    main(["vectors", "v.txt", "--eval", "analogies.txt"])
    assert capsys.readouterr().out.startswith("100.0% of 1 analogies")


def test_cbow_and_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "word2vec", "text.txt", *SMALL, "--model", "cbow", "--out", "run", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["run"] == "run" and report["loss"] < report["loss_before"]
    assert report["words_per_second"] > 0 and Path(report["vectors"]).exists()


def test_a_run_that_stopped_goes_on_bit_for_bit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "word2vec", "text.txt", *SMALL, "--epochs", "3", "--out", "whole"])
    main(["train", "word2vec", "text.txt", *SMALL, "--epochs", "3", "--out", "again"])
    newest = Path("again/checkpoints/step_000003")
    newest.rename("set-aside")
    Path("again/vectors.txt").unlink()
    main(["train", "word2vec", "--resume", "again"])
    for file in ("vectors.txt", "log.jsonl", "checkpoints/step_000003/model.safetensors"):
        assert Path("again", file).read_bytes() == Path("whole", file).read_bytes()
    assert Run.resume("again", word_vectors=True).trainer.steps == 3
    before = sorted(Path("again").rglob("*"))
    with pytest.raises(SystemExit):
        main(["train", "word2vec", "--resume", "again/checkpoints/step_000002"])
    assert "step_000002 is a checkpoint (must be the directory of its run)" in capsys.readouterr().err
    assert sorted(Path("again").rglob("*")) == before
    Path("text.txt").write_text("another text")
    with pytest.raises(SystemExit):
        main(["train", "word2vec", "--resume", "again"])
    assert "has changed since the run began" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 10**12}, r"dim is 10{12} \(must be at most \S+, the number of values in the file"),
        ({"vocab_size": 10**12}, r"vocab_size is 10{12} \(must be at most \S+, the number of values"),
        ({"dim": 0}, r"dim is 0 \(must be at least 1"),
        ({"dim": "many"}, "config.json does not fit"),
        ({"model_type": []}, r"model_type \[\] \(must be skip-gram or cbow"),
    ],
)
def test_a_checkpoint_with_a_wrong_size_is_refused(
    folder: Path, change: dict[str, object], message: str
) -> None:
    run = Run.new("run", load("text.txt"), WordTrainConfig(), "skip-gram", dim=4)
    run.save()
    saved = checkpoint.load(Path("run"))
    checkpoint.save(Path("run"), replace(saved, config=saved.config | change))
    with pytest.raises(CheckpointError, match=message):
        load_vectors("run")


BAD = {
    "no data": (["train", "word2vec", "none.txt"], "none.txt: no such file"),
    "few words": (
        ["train", "word2vec", "few.txt"],
        "0 words occur 5 times (must be at least 2; lower --min-count",
    ),
    "no epochs": (["train", "word2vec", "text.txt", "--epochs", "0"], "--epochs is 0 (must be at least 1)"),
    "no width": (["train", "word2vec", "text.txt", "--dim", "0"], "--dim is 0 (must be at least 1)"),
    "wide window": (
        ["train", "word2vec", "text.txt", "--window", "65"],
        "--window is 65 (must be at most 64",
    ),
    "unknown model": (["train", "word2vec", "--model", "glove"], "--model"),
    "resume nothing": (["train", "word2vec", "--resume", "none"], "none: no such directory"),
    "no question": (["vectors", "v.txt"], "nothing asked (give a word"),
    "no vectors": (["vectors", "none", "king"], "none: no such directory"),
    "unknown word": (["vectors", "v.txt", "kign"], "word 'kign': not in the vocabulary (did you mean king?)"),
    "no text of vectors": (["vectors", "text.txt", "king"], "text.txt: line 1 is"),
    "no examination": (
        ["vectors", "v.txt", "--eval", "few.txt"],
        "few.txt: line 1 is 'two words' (must be two words",
    ),
    "no neighbors": (["vectors", "v.txt", "king", "--n", "0"], "--n is 0 (must be at least 1)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(folder: Path, capfd: pytest.CaptureFixture[str], case: str) -> None:
    Path("few.txt").write_text("two words")
    Path("v.txt").write_text("2 2\nking 1 1\nman 1 0\n")
    args, message = BAD[case]
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert message in err
    assert not Path("runs").exists()


@pytest.mark.usefixtures("folder")
def test_two_processes_cannot_share_a_run() -> None:
    run = Run.new("run", load("text.txt"), WordTrainConfig(epochs=1), "skip-gram", dim=4)
    with alone(run.folder), pytest.raises(ConfigError, match="another process"):
        run.train()
    assert run.train().steps == 1
