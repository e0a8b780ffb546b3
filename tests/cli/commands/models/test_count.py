"""`chainrule count`: of families, well-known models and runs, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainrule.autograd.recording import Recording
from chainrule.cli import main
from chainrule.io import gguf
from chainrule.models import GPT, GPTConfig, LlamaConfig, Seq2SeqConfig, T5Config, make, model_class
from chainrule.runs.load import load
from chainrule.scaling import Batch, flops, total, training_memory
from chainrule.scaling.presets import PRESETS
from chainrule.text import CharTokenizer


def counted(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main(["count", *words, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("words", "config"),
    [
        ((), GPTConfig()),
        (
            ("gpt", "--n-layer=2", "--n-embd=32", "--vocab-size=99", "--no-bias"),
            GPTConfig(2, 4, 32, 128, 99, bias=False),
        ),
        (("llama", "--n-kv-head=4", "--no-tied"), LlamaConfig(n_kv_head=4, tied=False)),
    ],
)
def test_a_family_in_numbers(words: tuple[str, ...], config: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = counted(capsys, *words, "--batch-size=3", "--tokens=50")
    batch, model = Batch(3, 50), model_class(config).abstract(config)
    assert found["parameters"]["total"] == config.n_params
    assert found["flops"]["step"] == total(flops(model, batch)).total
    assert found["training_bytes"]["total"] == sum(training_memory(model, batch).values())
    assert found["batch"] == {"rows": 3, "tokens": 50, "source": 0, "masked": 0, "past": 0}


def test_the_memory_of_a_large_batch_is_that_of_its_microbatches(capsys: pytest.CaptureFixture[str]) -> None:
    found, model = counted(capsys, "gpt", "--batch-size=96"), GPT.abstract(GPTConfig())
    assert found["microbatches"] == 12
    assert found["training_bytes"]["total"] == sum(training_memory(model, Batch(8, 128)).values())
    assert found["flops"]["step"] == total(flops(model, Batch(96, 128))).total
    main(["count", "gpt", "--batch-size=96"])
    assert "memory to train, 96 × 128 tokens, in 12 microbatches: " in capsys.readouterr().out


def test_models_that_read_more_than_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    config = Seq2SeqConfig(n_layer=2, n_head=2, n_embd=32, vocab_size=65)
    found = counted(
        capsys, "seq2seq", "--n-layer=2", "--n-embd=32", "--vocab-size=65", "--n-head=2", "--tokens=16"
    )
    assert found["parameters"]["total"] == config.n_params and found["batch"]["source"] == 16
    main(["count", "seq2seq", "--tokens=16"])
    assert "a training step of 32 × 16 tokens and as many of the source" in capsys.readouterr().out
    found = counted(capsys, "t5", "--n-embd=32", "--n-layer=2")["parameters"]
    assert found["total"] == T5Config(n_layer=2, n_embd=32).n_params
    assert found["mlp"] == 2 * 2 * 2 * 4 * 32 * 32 and found["attention"] == 3 * 2 * 4 * 32 * 32
    found = counted(capsys, "bert", "--tokens=100", "--batch-size=2")
    assert found["batch"]["masked"] == 30 and found["running_bytes"]["cache"] == 0
    with pytest.raises(SystemExit):
        main(["count", "bert", "--measure"])
    assert "cannot be measured (must be a language model)" in capsys.readouterr().err


@pytest.mark.parametrize("name", PRESETS)
def test_a_well_known_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"transformer-base": 95.4, "bert-base": 110.1, "gpt2": 124.4, "gpt2-xl": 1557.6, "gpt3": 174604.3}
    found = counted(capsys, name)
    assert found["parameters"]["total"] / 1e6 == pytest.approx(sizes.get(name, 134.5), abs=0.05)
    main(["count", name])
    out = capsys.readouterr().out
    assert out.startswith(f"{name}: {found['parameters']['total']:,} parameters\n")
    assert "memory to train" in out and "memory to run" in out


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["count", "gpt", "--weights", "int8", "--batch-size", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "gpt: 842,496 parameters"
    assert lines[3].split() == ["mlp", "526,848", "62.5%"]
    assert lines[5].endswith("shares the embedding's matrix")
    assert "a training step of 8 × 128 tokens: 5.51 GFLOP" in lines
    assert "memory to run, 128 tokens: 1.419 MiB" in lines


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    text = "to be or not to be, that is the question " * 40
    Path("text.txt").write_text(text)
    main(
        [
            "train",
            "gpt",
            "text.txt",
            "--n-layer=1",
            "--n-embd=16",
            "--block-size=8",
            "--max-steps=1",
            "--out=run",
        ]
    )
    capsys.readouterr()
    found = counted(capsys, "run")
    assert found["batch"]["tokens"] == 8
    assert found["parameters"]["total"] == GPTConfig(1, 4, 16, 8, len(set(text))).n_params


def test_the_weights_of_a_file_as_they_are_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = make("llama", vocab_size=2, n_layer=1, n_head=2, n_embd=32, n_hidden=40, block_size=8)
    narrow = 32 * 40
    gguf.write(model, CharTokenizer("ab"), tmp_path / "m.gguf", weights="q4_0")
    path = str(tmp_path / "m.gguf")
    stored, q4, full = (
        counted(capsys, path, "--weights", weights)["running_bytes"] for weights in ("stored", "q4_0", "fp32")
    )
    assert stored["weights"] - q4["weights"] == narrow * (32 - 4.5) / 8  # one matrix is too narrow for blocks
    assert stored["cache"] == full["cache"] and stored["weights"] < full["weights"]
    for family in ("gpt", "gpt2"):
        with pytest.raises(SystemExit):
            main(["count", family, "--weights", "stored"])
        assert "--weights is 'stored' (must be a format, such as int8" in capsys.readouterr().err


def test_a_run_of_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("".join(f"to be {i}\tsein {i}\n" for i in range(40)))
    sizes = "--n-layer=1", "--n-embd=16", "--n-head=2", "--block-size=16"
    main(["train", "seq2seq", "pairs.tsv", *sizes, "--max-steps=1", "--out=run"])
    capsys.readouterr()
    found = counted(capsys, "run")
    assert found["batch"]["source"] == found["batch"]["tokens"] == 16
    assert found["parameters"]["total"] == load("run")[0].count()


def test_a_step_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("chainrule.scaling.speed.PATIENCE", 0.01)
    replays, replay = [], Recording.replay
    monkeypatch.setattr(Recording, "replay", lambda self: replays.append(self) or replay(self))
    sizes = "--n-layer=3", "--n-embd=16", "--block-size=8", "--vocab-size=20", "--batch-size=2"
    for family in ("gpt", "llama", "lstm", "ngram"):
        own = sizes[2:] if family == "ngram" else sizes
        report = counted(capsys, family, *own, "--measure")
        found, tokens = report["measured"], report["batch"]["rows"] * report["batch"]["tokens"]
        assert found["seconds_per_step"] > 0
        assert found["tokens_per_second"] == pytest.approx(tokens / found["seconds_per_step"])
    monkeypatch.setattr("chainrule.scaling.speed.PATIENCE", 0.2)
    main(["count", "gpt", *sizes, "--measure"])
    assert "tokens per second" in capsys.readouterr().out and len(replays) > 2  # compiled, as in training


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gtp",), "gtp: no such model or run (must be one of gpt, llama, "),
        (("gpt3", "--measure"), "only a family or a run can be measured"),
        (("gpt", "--n-head", "3"), "n-embd is 128"),
        (("gpt", "--tokens", "0"), "tokens is 0 (must be at least 1)"),
        (("gpt", "--tokens", "129"), "tokens is 129 (the model's context is 128)"),
        (("gpt", "--batch-size", "0"), "batch-size is 0"),
        (
            ("gpt", "--n-layer", "1000000000000"),
            "n-layer is 1000000000000 (must be an integer, from 1 to 10000)",
        ),
        (("gpt3", "--n-layer", "2"), "--n-layer"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["count", *words])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and said in err and err.count("\n") == 1


def test_the_keys_that_scripts_read_stay(capsys: pytest.CaptureFixture[str]) -> None:
    main(["count", "gpt", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert set(found["flops"]["attention"]) == {"forward", "backward", "again"}
    assert {"optimiser", "gradients"} <= set(found["training_bytes"])
