"""`--tokenizer bpe:300`: learned from the data, kept with the run, resumed; and the default of encoder-decoders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chainrule.cli import main
from chainrule.data import load
from chainrule.runs.load import load as load_run
from chainrule.text import BPETokenizer, CharTokenizer, Tokenizer, UnigramTokenizer

TINY = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--batch-size", "4"]
PAIRS = "".join(f"the number {i} is here\tdie Zahl {i} ist hier\n" for i in range(80))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(load("pydoc").text[:20_000], encoding="utf-8")
    Path("pairs.tsv").write_text(PAIRS, encoding="utf-8")


def tokenizer_of(run: str) -> Tokenizer:
    return load_run(run)[1]


def refused(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1
    return err


def test_a_tokenizer_is_learned_said_kept_and_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "train",
        "gpt",
        "text.txt",
        "--tokenizer",
        "bpe:300",
        *TINY,
        "--max-steps",
        "4",
        "--save-every",
        "2",
    ]
    main([*asked, "--out", "whole"])
    assert "tokenizer: bpe of 300 tokens, learned from the data\n" in capsys.readouterr().out
    assert isinstance(tokenizer_of("whole"), BPETokenizer) and tokenizer_of("whole").vocab_size == 300

    main([*asked, "--out", "again"])
    shutil.rmtree("again/checkpoints/step_000004")
    main(["train", "gpt", "--resume", "again", "--tokenizer", "bpe:300"])  # the same name: agreed
    file = Path("checkpoints/step_000004/model.safetensors")
    assert Path("again", file).read_bytes() == Path("whole", file).read_bytes()
    capsys.readouterr()
    for other in ("bpe:301", "unigram", "char"):
        said = refused("train", "gpt", "--resume", "again", "--tokenizer", other, capsys=capsys)
        assert f"resume: --tokenizer is {other}, the run has another (leave it out)" in said


def test_fewer_tokens_than_asked_for_are_still_those_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("short.txt").write_text("low lower lowest new newer newest " * 30)
    main(["train", "gpt", "short.txt", "--tokenizer", "bpe:9000", *TINY, "--max-steps", "1", "--out", "run"])
    assert tokenizer_of("run").vocab_size < 9000
    main(["train", "gpt", "--resume", "run", "--tokenizer", "bpe:9000"])
    main(["train", "gpt", "--config", "run/config.toml", "--out", "same"])
    assert tokenizer_of("same") == tokenizer_of("run")


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (["seq2seq", "pairs.tsv"], BPETokenizer),
        (["t5", "pairs.tsv"], BPETokenizer),
        (["seq2seq", "pairs.tsv", "--tokenizer", "char"], CharTokenizer),
        (["bert", "text.txt", "--tokenizer", "unigram:400"], UnigramTokenizer),
        (["bert-embedder", "pairs.tsv", "--tokenizer", "bpe:400"], BPETokenizer),
    ],
)
def test_every_family_takes_a_name(flags: list[str], kind: type, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", *flags, *TINY, "--max-steps", "1", "--out", "run"])
    assert type(tokenizer_of("run")) is kind
    said = "tokenizer: " in capsys.readouterr().out
    assert said == (kind is not CharTokenizer)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        (
            "bpe:x",
            "--tokenizer is bpe:x (must be bpe, or bpe: and the size of the vocabulary, such as bpe:4000)",
        ),
        ("bpe:3", "--tokenizer is bpe:3 (must be at least 256"),
        ("char:9", "--tokenizer is char:9 (must be char alone"),
        (
            "gpt2",
            "--tokenizer is gpt2 (must be char, bpe, unigram, wordpiece, with a size as in bpe:4000, or the path",
        ),
        ("BPE", "did you mean bpe?)"),
        ("bp:1000", "did you mean bpe?)"),
        (
            "no/such.json",
            "no/such.json: no such file (must be a tokenizer's file, or a run; nothing is fetched)",
        ),
    ],
)
def test_bad_names_are_one_line(name: str, rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rule in refused("train", "gpt", "text.txt", "--tokenizer", name, *TINY, capsys=capsys)


def test_shards_and_initial_weights_have_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "build", "text.txt", "--by", "paragraph", "--validation", "0.3", "--out", "shards"])
    main(["train", "gpt", "text.txt", *TINY, "--max-steps", "1", "--out", "run"])
    capsys.readouterr()
    assert "has its own" in refused("train", "gpt", "shards", "--tokenizer", "bpe", *TINY, capsys=capsys)
    start = ["train", "gpt", "text.txt", "--init", "run", "--tokenizer", "bpe"]
    assert "has its own" in refused(*start, capsys=capsys)
