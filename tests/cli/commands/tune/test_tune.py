from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.cli.main import main
from chainrule.models.tuning import Full, LoRA
from chainrule.tasks import memory
from chainrule.train import TrainConfig
from tests.runs.survivors import write_data

STEPS = [
    "--max-steps",
    "4",
    "--batch-size",
    "2",
    "--eval-every",
    "2",
    "--save-every",
    "2",
    "--eval-windows",
    "4",
]
SIZES = ["--n-layer", "1", "--n-head", "2", "--n-embd", "8", "--block-size", "16"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small bases of four families, and data for them."""
    made = tmp_path_factory.mktemp("tune")
    write_data(made)
    text, pairs = str(made / "text.txt"), str(made / "pairs.jsonl")
    main(["train", "gpt", text, *SIZES, *STEPS, "--lr", "2e-3", "--out", str(made / "gpt")])
    main(
        [
            "train",
            "llama",
            text,
            *SIZES,
            *STEPS,
            "--n-kv-head",
            "1",
            "--n-hidden",
            "8",
            "--out",
            str(made / "llama"),
        ]
    )
    main(["train", "bert", text, *SIZES, *STEPS, "--n-hidden", "8", "--out", str(made / "bert")])
    main(["train", "seq2seq", pairs, *SIZES, *STEPS, "--out", str(made / "seq2seq")])
    return made


def tune(folder: Path, base: str, data: str, out: Path, *words: str) -> None:
    main(["tune", str(folder / base), str(folder / data), *STEPS, "--out", str(out), *words])


@pytest.mark.requirement("R-390")
def test_the_command_that_others_script_against(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tuned"
    words = ["--method", "lora", "--rank", "2", "--max-steps", "4", "--out", str(out)]
    main(["tune", str(folder / "gpt"), str(folder / "text.txt"), *words])
    said = capsys.readouterr().out
    model, _ = cr.load(out)
    learning = model.count(trainable=True)
    assert f"{learning:,} of {model.count():,} parameters learn" in said and learning == 1 * 2 * 2 * (8 + 8)
    assert "memory: about" in said and "with all weights learning" in said
    assert "lr is 0.002, for lora that of the base's own training" in said
    main(["tune", "--resume", str(out)])
    assert "the run is finished, at step 4" in capsys.readouterr().out
    main(["tune", "--resume", str(out), "--max-steps", "6", "--json"])
    assert json.loads(capsys.readouterr().out)["steps"] == 6
    main(["sample", str(out), "--max-new-tokens", "3"])
    assert capsys.readouterr().out


@pytest.mark.requirement("R-390")
def test_a_high_rate_is_warned_of(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = ("--method", "full")
    tune(folder, "gpt", "text.txt", tmp_path / "low", *full)
    said = capsys.readouterr().out
    assert (
        "lr is 0.0002, for full a tenth of that of the base's own training" in said and "warning" not in said
    )
    tune(folder, "gpt", "text.txt", tmp_path / "lora", "--lr", "3e-3")
    assert "warning" not in capsys.readouterr().out
    again = ["--method", "full", "--max-steps", "1", "--out", str(tmp_path / "twice")]
    main(["tune", str(tmp_path / "low"), str(folder / "text.txt"), *again])  # tuned itself, at another rate
    assert "lr is 0.0002, for full a tenth" in capsys.readouterr().out
    tune(folder, "gpt", "text.txt", tmp_path / "high", "--lr", "3e-4", *full)
    assert (
        "learning rate 0.0003, in the pretraining 0.002 (must be at most a tenth" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("base", "data", "words", "family"),
    [
        ("llama", "text.txt", ["--method", "prefix", "--length", "2"], "llama"),
        ("gpt", "text.txt", ["--method", "prompt", "--init-text", "the"], "gpt"),
        ("gpt", "text.txt", ["--method", "full", "--freeze-layers", "1"], "gpt"),
        ("bert", "labels.jsonl", ["--method", "lora", "--targets", "q,k,v"], "bert-classifier"),
        ("bert", "labels.jsonl", ["--method", "head"], "bert-classifier"),
        ("bert", "tags.conll", ["--method", "adapter", "--task", "tagging"], "bert-tagger"),
        ("bert", "text.txt", ["--method", "bitfit", "--task", "masked-lm"], "bert"),
        ("seq2seq", "pairs.jsonl", ["--method", "adapter", "--bottleneck", "2", "--after", "mlp"], "seq2seq"),
    ],
)
def test_bases_of_every_family(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    base: str,
    data: str,
    words: Any,
    family: str,
) -> None:
    out = tmp_path / "tuned"
    tune(folder, base, data, out, *words, "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["model"], found["steps"]) == (family, 4)
    model, tokenizer = cr.load(out)
    assert tokenizer.vocab_size and (model.count(trainable=True) < model.count() or "full" in words)
    main(["tune", "--resume", str(out), "--json"])
    assert json.loads(capsys.readouterr().out)["nats_per_token" if "nats_per_token" in found else "steps"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "tune: BASE is missing (say chainrule tune BASE DATA, or --resume RUN)"),
        (["nowhere", "x.txt"], "nowhere: no such directory or file"),
        (["--method", "lorra"], "method 'lorra': no such method"),
        (["{gpt}", "{text}", "--targets", "c_atn"], "lora: --targets 'c_atn' names no layer of this GPT"),
        (["{gpt}", "{text}", "--rank", "9"], "lora: --rank is 9 (must be at most 8"),
        (["{gpt}", "{text}", "--task", "tagging"], "tune: --task is tagging for a GPT (must be language-modeling"),
        (["{gpt}", "{text}", "--length", "3"], "--length: unknown option (an option of --method prefix or prompt)"),
        (
            ["{gpt}", "{text}", "--method", "prefix", "--rank", "3"],
            "--rank: unknown option (an option of --method lora); see chainrule tune --method prefix --help",
        ),
        (["{gpt}", "{text}", "--method", "prefix", "--length", "0"], "; see chainrule tune --method prefix --help"),
        (["--resume", "{gpt}"], "gpt was not tuned by a method (resume with: "),
    ],
)  # fmt: skip
def test_misuse_is_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    given = [word.format(gpt=folder / "gpt", text=folder / "text.txt") for word in words]
    with pytest.raises(SystemExit) as stopped:
        main(["tune", *given, *(["--out", str(tmp_path / "new")] if "--resume" not in words else [])])
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and message in error and error.count("\n") == 1
    assert not (tmp_path / "new").exists()


TALK = {"instruction": "a", "output": "b"}


@pytest.mark.parametrize(
    ("base", "name", "content", "message"),
    [
        ("gpt", "d.json", '{"data": []}', "d.json: does not begin with [ (must be a list of objects"),
        ("gpt", "d.json", "null", "d.json: does not begin with ["),
        ("gpt", "d.json", "[]", "d.json: no conversations (must have at least two)"),
        ("gpt", "d.json", "[1, 2]", "d.json: line 1 holds a int (must be an object)"),
        ("gpt", "d.json", '[{"text": "a"}]', "d.json: line 1: fields 'text' (must be one of: messages, conversations"),
        ("bert", "d.json", json.dumps([TALK]), "d.json holds conversations, BASE is a bert (must be a gpt, llama or"),
        ("bert", "d.jsonl", json.dumps(TALK), "d.jsonl holds conversations, BASE is a bert"),
        ("bert", "d.json", '[{"text": "a", "label": "b"}]', "d.json is a .json, BASE a bert (must be texts with"),
        (
            "gpt",
            "d.jsonl",
            "\n".join(json.dumps(TALK | {"instruction": f"say {c}"}) for c in "ax☃"),
            "d.jsonl: line 3: encode: unknown character '☃' (U+2603) at position",
        ),
    ],
)  # fmt: skip
def test_data_that_a_base_cannot_learn_from(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], base: str, name: str, content: str, message: str
) -> None:  # fmt: skip
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["tune", str(folder / base), str(tmp_path / name), "--out", str(tmp_path / "new")])
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and message in error and error.count("\n") == 1
    assert "☃" not in content or "train --tokenizer bpe:4000" in error


@pytest.mark.parametrize("talk", [
    {"question": "{}?", "answer": "a"},
    {"conversations": [{"from": "human", "value": "{}?"}, {"from": "gpt", "value": "a"}]},
])  # fmt: skip
def test_conversations_of_every_layout_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], talk: dict[str, Any]
) -> None:
    model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=8, block_size=32, vocab_size=32)
    tokenizer = cr.text.CharTokenizer.train("abcdefghijklmnopqrstuvwxyz ?<>|\n")
    cr.io.save_pretrained(model, tokenizer, tmp_path / "base")
    lines = [json.dumps(talk).replace("{}", f"is it {c}") for c in "abcdefgh"]
    (tmp_path / "d.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = ["--max-steps", "1", "--out", str(tmp_path / "new")]
    main(["tune", str(tmp_path / "base"), str(tmp_path / "d.jsonl"), *words])
    assert "tokens of answers are learned" in capsys.readouterr().out


def test_a_resumed_run_keeps_its_method(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tuned"
    tune(folder, "gpt", "text.txt", out, "--rank", "2")
    capsys.readouterr()
    for words, message in (
        (["--rank", "3"], "resume: --rank is 3, in the run 2 (leave it out)"),
        (["--method", "prefix"], "resume: --method is prefix, in the run lora (leave it out)"),
        ([str(folder / "llama")], "tune: BASE is "),
    ):
        with pytest.raises(SystemExit):
            main(["tune", *words, "--resume", str(out)])
        assert message in capsys.readouterr().err
    tune_again = ["tune", str(folder / "gpt"), str(folder / "text.txt"), "--rank", "2", "--resume", str(out)]
    main(tune_again)


def test_lora_fits_where_full_tuning_does_not(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine whose memory lies between the two forecasts."""
    model, _ = cr.load(folder / "gpt")
    training = TrainConfig(batch_size=1)
    needs = []
    for method in (LoRA(rank=1), Full()):
        with memory.counted_with(method):
            needs.append(memory.step_bytes(model.config, training))
    assert needs[0] < needs[1]
    monkeypatch.setattr(memory, "memory", lambda: sum(needs) // 2)
    base, text = str(folder / "gpt"), str(folder / "text.txt")
    words = ["tune", base, text, "--batch-size", "1", "--max-steps", "1", "--eval-windows", "1"]
    with pytest.raises(SystemExit):
        main([*words, "--method", "full", "--out", str(tmp_path / "full")])
    said = capsys.readouterr().err
    assert "a step takes" in said and said.endswith("(take --method lora)\n")
    main([*words, "--method", "lora", "--rank", "1", "--out", str(tmp_path / "lora")])
    assert (tmp_path / "lora").is_dir() and not (tmp_path / "full").exists()


def test_a_prefix_is_no_base_and_is_not_exported(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, new = str(tmp_path / "prefix"), str(tmp_path / "new")
    tune(folder, "gpt", "text.txt", Path(run), "--method", "prefix", "--length", "2")
    for words, message in (
        (
            ["tune", run, str(folder / "text.txt")],
            f"{run}: no base for another training: h.0.attn.prefix is a",
        ),
        (
            ["export", run],
            f"{run}: no model for other programs: h.0.attn.prefix is a KeyValuePrefix (must be LoRA",
        ),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([*words, "--out", new])
        assert stopped.value.code == 2 and message in capsys.readouterr().err


def test_a_short_training_warms_up_and_evaluates_before_its_end(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tune", str(folder / "gpt"), str(folder / "text.txt"), "--max-steps", "8", "--out"]
    main([*words, str(tmp_path / "a")])
    main([*words, str(tmp_path / "b"), "--warmup", "3", "--eval-every", "8"])
    for name, expected in (("a", (0, 2)), ("b", (3, 8))):
        config = cr.runs.Run.resume(tmp_path / name).trainer.config
        assert (config.warmup, config.eval_every) == expected
    with pytest.raises(SystemExit):
        main(["tune", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("by their number for conversations and labels") == 4
    assert "(default: that of the base's own training)" in said
    with pytest.raises(SystemExit):
        main(["tune", "--method", "full", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "(default: a tenth of that of the base's own training)" in said


def test_help_shows_the_options_of_a_method(capsys: pytest.CaptureFixture[str]) -> None:
    for method, flag in (("lora", "--rank"), ("adapter", "--bottleneck"), ("prompt", "--init-text")):
        with pytest.raises(SystemExit):
            main(["tune", "--method", method, "--help"])
        assert flag in capsys.readouterr().out
