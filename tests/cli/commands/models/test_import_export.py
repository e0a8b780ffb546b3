"""`chainrule import` and `chainrule export`"""

from __future__ import annotations

import errno
import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.io import llama2c, save_pretrained
from chainrule.models import make
from chainrule.text import BPETokenizer, CharTokenizer, Conventions
from tests.io.test_llama2c import model, tokenizer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "text.txt").write_text(cr.data.load("pydoc").text[:5000], encoding="utf-8")
    options = (
        "--tokenizer char --n-layer 1 --n-head 2 --n-embd 32 --block-size 16 --max-steps 2 --batch-size 2"
    )
    main(["train", "gpt", str(folder / "text.txt"), *options.split(), "--out", str(folder / "run")])
    return folder / "run"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    main(list(words))
    return capsys.readouterr().out


def sample(capsys: pytest.CaptureFixture[str], place: Path) -> str:
    options = ["--prompt", "The ", "--temperature", "0", "--max-new-tokens", "20"]
    return said(capsys, "sample", str(place), *options)


def test_a_run_goes_out_and_comes_back(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = sample(capsys, run)
    for format, file in (("hf", ""), ("gguf", "model.gguf")):
        out = tmp_path / format
        answer = json.loads(said(capsys, "export", str(run), "--out", str(out), "--format", format, "--json"))
        assert answer["files"] == sorted(path.name for path in out.iterdir())
        assert sample(capsys, out / file) == text
        said(capsys, "import", str(out / file), "--out", str(tmp_path / f"again-{format}"))
        assert sample(capsys, tmp_path / f"again-{format}") == text


def test_matrices_too_narrow_for_blocks_are_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = make("llama", vocab_size=2, n_layer=1, n_head=2, n_embd=32, n_hidden=40, block_size=8)
    save_pretrained(narrow, CharTokenizer("ab"), tmp_path / "narrow")
    q4 = ("--format", "gguf", "--weights", "q4_0")
    out = said(capsys, "export", str(tmp_path / "narrow"), "--out", str(tmp_path / "a"), *q4)
    assert (
        "1 matrix stays in F32: blocks need rows of a multiple of 32 numbers (blk.0.ffn_down.weight)" in out
    )
    again = said(capsys, "export", str(tmp_path / "narrow"), "--out", str(tmp_path / "b"), *q4, "--json")
    assert json.loads(again)["matrices_in_f32"] == ["blk.0.ffn_down.weight"]
    whole = said(capsys, "export", str(run), "--out", str(tmp_path / "c"), *q4)
    assert "F32" not in whole


def test_a_file_that_is_cut_says_what_to_do(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "export", str(run), "--out", str(tmp_path / "g"), "--format", "gguf")
    content = (tmp_path / "g" / "model.gguf").read_bytes()
    for kept in (100, len(content) // 2, len(content) - 40):
        (tmp_path / "cut.gguf").write_bytes(content[:kept])
        with pytest.raises(SystemExit) as stop:
            main(["sample", str(tmp_path / "cut.gguf")])
        err = capsys.readouterr().err
        assert stop.value.code == 2 and err.count("\n") == 1
        assert "cut.gguf: " in err and "the file is cut or damaged: get it again)" in err


def test_llama_cpp_has_one_gelu(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tanh = make("gpt", vocab_size=2, n_layer=1, n_head=1, n_embd=4, activation="gelu_tanh")
    save_pretrained(tanh, CharTokenizer("ab"), tmp_path / "tanh")
    for source, format, warned in (
        (run, "gguf", True),
        (run, "hf", False),
        (tmp_path / "tanh", "gguf", False),
    ):
        out = tmp_path / f"{source.name}-{format}"
        main(["export", str(source), "--out", str(out), "--format", format])
        assert ("train with --activation gelu_tanh" in capsys.readouterr().err) == warned


def test_a_model_that_came_in_is_trained_and_judged(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "import", str(run / "checkpoints" / "step_000002"), "--out", str(tmp_path / "in"))
    text = str(run.parent / "text.txt")
    one, other = (
        json.loads(said(capsys, "eval", str(place), text, "--batch-size=4", "--json"))
        for place in (run, tmp_path / "in")
    )
    assert one["nats_per_token"] == other["nats_per_token"]
    options = ["--init", str(tmp_path / "in"), "--max-steps", "1", "--batch-size", "2", "--lr", "1e-12"]
    said(capsys, "train", "gpt", text, *options, "--out", str(tmp_path / "on"))
    assert sample(capsys, tmp_path / "on") == sample(capsys, run)


def test_a_long_context_is_kept_and_trained_in_windows_that_fit(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(run.parent / "text.txt")
    tokenizer = CharTokenizer.train(text.read_text())
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_hidden": 32, "block_size": 4096}
    save_pretrained(make("llama", **size, vocab_size=tokenizer.vocab_size), tokenizer, tmp_path / "long")
    monkeypatch.setattr("chainrule.tasks.memory.memory", lambda: 8 << 20)  # a machine of 8 MiB
    train = [
        "train",
        "llama",
        str(text),
        "--init",
        str(tmp_path / "long"),
        "--max-steps",
        "2",
        "--batch-size",
        "4",
    ]
    out = said(capsys, *train, "--out", str(tmp_path / "on"))
    (line,) = (line for line in out.splitlines() if line.startswith("trains on windows of "))
    window = int(line.split()[4].replace(",", ""))
    assert 64 <= window < 4096 and "the context stays 4,096: a step of 4 takes about " in line
    resumed = cr.runs.Run.resume(tmp_path / "on")
    assert resumed.model.config.block_size == 4096
    assert resumed.trainer.batches.batch(0)[0].shape == (4, window)
    found = json.loads(said(capsys, "eval", str(tmp_path / "on"), "--json"))
    assert found["nats_per_token"] == pytest.approx(resumed.trainer.evaluate(), rel=1e-6)
    monkeypatch.setattr("chainrule.tasks.memory.memory", lambda: 1 << 20)
    with pytest.raises(SystemExit):
        main([*train, "--batch-size", "40", "--block-size", "400", "--out", str(tmp_path / "other")])
    assert "--batch-size is 40, --block-size 400: a step takes" in capsys.readouterr().err


def test_a_file_of_llama2c_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    llama2c.write(model(), tokenizer(), tmp_path)
    answer = said(capsys, "import", str(tmp_path / "model.bin"), "--out", str(tmp_path / "hf"), "--json")
    assert json.loads(answer) == {
        "out": str(tmp_path / "hf"),
        "architecture": "Llama",
        "parameters": model().count(),
        "context": model().config.block_size,
        "tokenizer": "piece_bpe",
        "vocabulary": 269,
        "end_tokens": ["</s>"],
        "chat_template": False,
    }
    answer = said(capsys, "export", str(tmp_path / "hf"), "--out", str(tmp_path / "c"), "--format", "llama2c")
    assert "model.bin, tokenizer.bin" in answer
    for name in ("model.bin", "tokenizer.bin"):
        assert (tmp_path / "c" / name).read_bytes() == (tmp_path / name).read_bytes()


def test_weights_without_a_tokenizer_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_pretrained(make("neox", vocab_size=2, n_embd=32), None, tmp_path / "weights")
    cr.io.save_tokenizer(CharTokenizer("ab"), tmp_path / "words.json")
    out = str(tmp_path / "model")
    with pytest.raises(SystemExit):
        main(["import", str(tmp_path / "weights"), "--out", out])
    assert "holds no tokenizer" in capsys.readouterr().err
    said(
        capsys, "import", str(tmp_path / "weights"), "--tokenizer", str(tmp_path / "words.json"), "--out", out
    )
    assert cr.load(out)[1] == CharTokenizer("ab")
    assert said(capsys, "sample", out, "--prompt", "ab", "--max-new-tokens", "3")


def test_a_tokenizer_from_elsewhere_brings_its_conventions(tmp_path: Path) -> None:
    tokenizer = BPETokenizer.train("low lower lowest", vocab_size=260, special_tokens=("<s>", "<end>"))
    size = {"vocab_size": tokenizer.vocab_size, "n_embd": 32}
    save_pretrained(make("neox", **size), None, tmp_path / "weights")
    ids = tokenizer.special_ids
    tokenizer.conventions = Conventions(
        bos=ids["<s>"],
        eos=(ids["<end>"],),
        add_bos=True,
        chat_template="{{ messages }}",
        generation={"top_k": 3},
    )
    save_pretrained(make("neox", **size), tokenizer, tmp_path / "other")
    for place in (tmp_path / "other", tmp_path / "other" / "tokenizer.json"):
        _, found = cr.io.load(tmp_path / "weights", place)
        assert found.conventions == tokenizer.conventions


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (
            ["import", "{run}", "--out", "x"],
            "a run of ours (must be a model of another program; sample, eval,",
        ),
        (
            ["import", "{run}/checkpoints", "--out", "x"],
            "holds no model (must have config.json, or one .gguf",
        ),
        (
            ["import", "HuggingFaceTB/SmolLM2", "--out", "x"],
            "HuggingFaceTB/SmolLM2: no such directory or file (nothing is downloaded; give a directory or a file)",
        ),
        (["import", "{run}/log.jsonl", "--tokenizer", "nowhere", "--out", "x"], "nowhere: no such file"),
        (["import", "{run}/log.jsonl", "--out", "x"], "not a known model format"),
        (["import", "{empty}", "--out", "x"], "empty.gguf: is empty (must be a directory, .gguf"),
        (["export", "{run}", "--out", "{run}"], "exists already"),
        (["export", "{run}", "--out", "x", "--format", "llama2c"], "llama2c: cannot hold a GPT"),
        (["export", "{run}", "--out", "x", "--weights", "q8_0"], "--weights is 'q8_0', --format 'hf'"),
        (["export", "{run}"], "--out"),
        (["eval", "{rnn}"], "a model without its training"),
        (["export", "{rnn}", "--out", "x"], "Hugging Face has no model like this RNNLM (must be GPT"),
        (
            ["export", "{bag}", "--out", "x"],
            "BERTClassifier: buckets is 64 (must be 0, without a bag of words);",
        ),
        (["export", "{mean}", "--out", "x"], "BERTClassifier: pooling is mean (must be cls); train it so"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], rule: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {name: run.parent / name for name in ("rnn", "bag", "mean")} | {
        "empty": run.parent / "empty.gguf"
    }
    places["empty"].touch()
    if not places["rnn"].exists():
        save_pretrained(make("rnn", vocab_size=2), CharTokenizer("ab"), places["rnn"])
        size = {"n_layer": 1, "n_head": 1, "n_embd": 4, "n_hidden": 4, "block_size": 4, "vocab_size": 2}
        for name, more in (("bag", {"buckets": 64}), ("mean", {"pooling": "mean"})):
            model = make("bert-classifier", **size, classes=2, **more)
            save_pretrained(model, CharTokenizer("ab"), places[name])
    with pytest.raises(SystemExit) as stop:
        main([word.format(run=run, **places) for word in words])
    error = capsys.readouterr().err
    assert stop.value.code == 2 and rule in error and error.count("\n") == 1
    assert not Path("x").exists()


@pytest.mark.parametrize(
    ("family", "more", "start"),
    [
        ("t5", {}, "pad"),
        ("t5", {"gated": True, "activation": "gelu_tanh", "tied": False, "scale_output": False}, "pad"),
        (
            "seq2seq",
            {"norm": "post", "positions": "learned", "embedding_norm": True, "bias": True, "tied": True},
            "eos",
        ),
    ],
)
def test_an_encoder_decoder_comes_in_answers_and_is_trained_on(
    family: str, more: dict[str, Any], start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With rows for more tokens than there are, as published ones have."""
    letters = CharTokenizer.train("abcdABCD", ("<pad>", "<s>", "</s>"))
    cr.seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 9, "vocab_size": letters.vocab_size + 3}
    save_pretrained(make(family, **sizes, **more, target_start=start), letters, tmp_path / "x")
    said_ = said(capsys, "import", str(tmp_path / "x"), "--out", str(tmp_path / "y"))
    assert "translate with: " in said_ and f'sample {tmp_path / "y"} --prompt "TEXT"' in said_
    answer = said(capsys, "sample", str(tmp_path / "y"), "--prompt", "abc")
    assert answer == said(capsys, "sample", str(tmp_path / "x"), "--prompt", "abc")
    words = ["".join(w) for w in product("abcd", repeat=3)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{word}\t{word.upper()}\n" for word in words))
    options = [
        "--init",
        str(tmp_path / "y"),
        "--max-steps",
        "3",
        "--batch-size",
        "8",
        "--out",
        str(tmp_path / "run"),
    ]
    said(capsys, "train", family, str(tmp_path / "pairs.tsv"), *options)
    found = json.loads(said(capsys, "eval", str(tmp_path / "run"), "--json"))
    assert found["pairs"] > 0 and found["cut"] == 0
    model, _ = cr.load(tmp_path / "run")
    assert model.config.target_start == start and model.config.vocab_size == letters.vocab_size + 3


def test_import_recommends_no_command_that_must_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 9, "vocab_size": 3}
    bare = CharTokenizer("abc")
    for family, lacks in (("t5", "cannot translate yet: "), ("bert", "cannot guess words yet: ")):
        save_pretrained(make(family, **sizes), bare, tmp_path / family)
        out = said(capsys, "import", str(tmp_path / family), "--out", str(tmp_path / f"{family}-here"))
        assert lacks in out and "(--tokenizer FILE)" in out and " with: " not in out
        with pytest.raises(SystemExit):
            main(["sample", str(tmp_path / f"{family}-here"), "--prompt", "a [MASK]"])


@pytest.mark.parametrize("content", [b"", b"\x40\0\0\0" * 30])
def test_a_damaged_tokenizer_file_is_named_once(
    content: bytes, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "export", str(run), "--out", str(tmp_path / "g"), "--format", "gguf")
    damaged = tmp_path / "bin.bin"
    damaged.write_bytes(content)
    with pytest.raises(SystemExit) as stop:
        main(["import", str(tmp_path / "g"), "--tokenizer", str(damaged), "--out", str(tmp_path / "m")])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("bin.bin: ") == 1 and "the file has" in err


def test_a_damaged_gguf_speaks_of_no_other_file(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A vocabulary that does not fit the weights."""
    said(capsys, "export", str(run), "--out", str(tmp_path / "g"), "--format", "gguf")
    path = tmp_path / "g" / "model.gguf"
    content = path.read_bytes()
    at = content.index(b"gpt2.block_count") + len(b"gpt2.block_count") + 4
    path.write_bytes(content[:at] + b"\x03" + content[at + 1 :])
    with pytest.raises(SystemExit) as stop:
        main(["import", str(path), "--out", str(tmp_path / "m")])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.startswith(f"error: {path}: the sizes ask for ")
    assert "safetensors" not in err


@pytest.mark.parametrize("format", ["hf", "gguf"])
def test_a_full_disk_is_said_of_the_file_that_was_asked_for(
    format: str,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(file: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("chainrule.files.flush", full)
    with pytest.raises(SystemExit) as stop:
        main(["export", str(run), "--out", str(tmp_path / "out"), "--format", format])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.startswith(f"error: {tmp_path / 'out'}")
    assert "cannot be written (No space left on device)" in err and ".partial" not in err
    assert list(tmp_path.iterdir()) == []
