"""The command line as a person meets it: commands that work, and one line for everything that cannot."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import chainrule as cr
from chainrule.cli import COMMANDS, main
from chainrule.cli.commands import demo
from chainrule.data import load
from chainrule.train.log import read

SMALL = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--batch-size", "4"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of our own with a text in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("text.txt").write_text(load("pydoc").text[:20_000], encoding="utf-8")
    return tmp_path


def start(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "chainrule.cli", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def run(*args: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a process of its own."""
    process = start(*args)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_train_stop_resume_and_sample(folder: Path) -> None:
    whole = run("train", "gpt", "text.txt", *SMALL, "--max-steps", "40", "--seed", "1", "--out", "whole")
    assert whole[0] == 0 and whole[2] == ""
    assert re.search(r"validation loss \d\.\d+ nats = \d\.\d+ bits per character after 40 steps", whole[1])
    assert Path("whole/checkpoints/step_000040/model.safetensors").exists()

    steps = 100_000
    process = start("train", "gpt", "text.txt", *SMALL, "--max-steps", str(steps), "--out", "stopped")
    deadline = time.monotonic() + 60
    while len(read(Path("stopped/log.jsonl"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err == ""
    assert "resume with:" in out and "train gpt --resume stopped" in out
    assert (
        sorted(os.listdir("stopped/checkpoints"))[0] == "step_000000"
    )  # of which it could have gone on at once

    code, text, err = run(
        "sample", "whole", "--prompt", "The ", "--max-new-tokens", "20", "--temperature", "0"
    )
    assert (code, err) == (0, "") and text.startswith("The ") and len(text) == 4 + 20 + 1
    assert (
        run("sample", "whole", "--prompt", "The ", "--max-new-tokens", "20", "--temperature", "0")[1] == text
    )


def test_resume_by_command_is_bit_for_bit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["text.txt", *SMALL, "--max-steps", "20", "--save-every", "10"]
    main(["train", "gpt", *flags, "--out", "whole"])
    main(["train", "gpt", *flags, "--out", "again"])
    newest = Path("again/checkpoints/step_000020")
    newest.rename("set-aside")
    main(["train", "gpt", "--resume", "again"])  # from step 10
    for file in ("model.safetensors", "optimizer.safetensors"):
        assert (newest / file).read_bytes() == Path("whole/checkpoints/step_000020", file).read_bytes()
    logs = [[(r["step"], r.get("loss")) for r in read(Path(run, "log.jsonl"))] for run in ("whole", "again")]
    assert logs[0] == logs[1]
    assert "validation loss" in capsys.readouterr().out


@pytest.fixture
def small_demo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SIZE", {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16})
    monkeypatch.setattr(demo, "LENGTH", 20)


@pytest.mark.usefixtures("small_demo")
def test_the_demo_in_small(capsys: pytest.CaptureFixture[str]) -> None:
    main(["demo", "--minutes", "0.02"])
    out = capsys.readouterr().out
    for expected in (
        "Corpus",
        "counting pairs of characters",
        "this model",
        "it continues 'The '",
        "Try next",
    ):
        assert expected in out
    assert Path("runs/demo/loss.png").read_bytes().startswith(b"\x89PNG")
    records = read(Path("runs/demo/log.jsonl"))
    assert records[0]["step"] == 1 and "validation" in records[-1]
    told = re.search(r"(sample runs/demo .*)", out)  # what to try next
    assert told
    main([*shlex.split(told[1]), "--max-new-tokens", "5"])


@pytest.mark.usefixtures("small_demo")
def test_the_demo_without_matplotlib_does_without_the_picture(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    Path("runs/demo").mkdir(parents=True)
    main(["demo", "--minutes", "0.01"])
    out = capsys.readouterr().out
    assert "matplotlib is not installed" in out and "Try next" in out
    assert not Path("runs/demo-2/loss.png").exists() and Path("runs/demo-2/log.jsonl").exists()
    assert not any(Path("runs/demo").iterdir())  # was there before, and is left alone


BAD = {
    "unknown command": (["demmo"], "'demmo': no such command (did you mean demo?)"),
    "unknown subcommand": (["data", "lost"], "did you mean data list?"),
    "unknown flag": (
        ["demo", "--minuts", "2"],
        "--minuts: unknown option (did you mean --minutes?); see chainrule demo --help",
    ),
    "text for a number": (["demo", "--minutes", "two"], "--minutes: got 'two' (must be a number)"),
    "fraction for an integer": (["train", "--n-layer", "1.5"], "--n-layer: got '1.5' (must be an integer)"),
    "no value": (["train", "--lr"], "--lr: no value (must be followed by one"),
    "too many arguments": (["train", "gpt", "text.txt", "more"], "'more': one argument too many"),
    "negative minutes": (
        ["demo", "--minutes", "-1"],
        "demo: --minutes is -1.0 (must be a positive number of minutes",
    ),
    "no minutes": (["demo", "--minutes", "nan"], "--minutes is nan"),
    "negative seed": (["demo", "--seed", "-1"], "seed is -1 (must be from 0 to 2**64 - 1)"),
    "nearly a command and its family": (["trian", "gpt", "f.txt"], "did you mean train gpt?)"),
    "nearly a command and a file": (["trian", "f.txt"], "'trian': no such command (did you mean train?)"),
    "nearly a group": (["rnus", "list"], "did you mean runs list?)"),
    "nearly a group and its command": (["dtaa", "gett"], "did you mean data get?)"),
    "nearly a group alone": (["rnus"], "(there are runs list, runs compare, runs report)"),
    "joined by a dash": (["data-list"], "did you mean data list?)"),
    "nearly a subcommand": (["data", "gett"], "'data gett': no such command (did you mean data get?)"),
    "a group alone": (["runs"], "runs: no command alone (there are runs list, runs compare, runs report)"),
    "a value for a switch by its place": (
        ["train", "gpt", "text.txt", "--bias", "false"],
        "'false': one argument too many (a switch has no value: --name turns it on, --no-name off)",
    ),
    "no name at all": (["train", "gpt", ""], "DATA: got '' (must not be empty)"),
    "half a pair": (
        ["sample", "run", "--logit-bias", "3", "x"],
        "--logit-bias: got '3 x' (must be pairs: an integer, then a number)",
    ),
    "options of sampling for chat": (
        ["chat", "run", "--temperature", "-1"],
        "error: chat: --temperature is -1.0",
    ),
    "a name of a hub": (["import", "gpt2"], "gpt2: no such directory or file (nothing is downloaded;"),
    "an empty directory": (
        ["train", "gpt", "nothing"],
        "nothing: an empty directory (must be a text file, or",
    ),
    "a file for a directory of runs": (
        ["runs", "list", "text.txt"],
        "text.txt: is a file (must be a directory with",
    ),
    "pairs that are not there": (
        ["train", "seq2seq", "nope.txt"],
        "nope.txt: no such file (must be a file of pairs",
    ),
    "a ragged table": (
        ["train", "bert-classifier", "ragged.csv"],
        "row 3, in line 3, has 3 cells, the first row 2",
    ),
    "a text for a file": (
        ["tokenize", "encode", "hello world"],
        "'hello world': no such file (a text itself comes from standard input: echo TEXT | chainrule COMMAND -)",
    ),
    "words without a trace": (
        ["tokenize", "show", "--words", "3"],
        "--words is given without trace (leave it out)",
    ),
    "a text for a model": (["eval", "text.txt"], "text.txt: not a known model format"),
    "no command of a group": (
        ["tokenize", "foo"],
        "(there are tokenize train, tokenize encode, tokenize decode",
    ),
    "nearly an option of all": (["--verson"], "did you mean --version?"),
    "capital letters": (["train", "GPT", "text.txt"], "did you mean gpt?"),
    "option of another family": (
        ["train", "rnn", "--n-head", "3"],
        "--n-head: unknown option; see chainrule",
    ),
    "file for a run": (["sample", "text.txt"], "text.txt: not a known model format (must be a directory"),
    "negative smoothing": (["ngram", "--smoothing", "-1"], "ngram: --smoothing is -1.0 (must be at least 0)"),
    "no count": (
        ["train", "word2vec", "text.txt", "--min-count", "0"],
        "--min-count is 0 (must be at least 1)",
    ),
    "no choice": (
        ["data", "stats", "--by", "lines"],
        "--by: got 'lines' (must be one of file, line, paragraph; did you mean line?)",
    ),
    "too few words": (["vectors", "v.txt", "--analogy", "a", "b"], "--analogy: got 'a b' (must be 3 values)"),
    "text for a number or none": (
        ["train", "--budget", "x"],
        "--budget: got 'x' (must be a number of seconds, or a time such as 10m or 1.5h)",
    ),
    "a value for a switch": (["ngram", "--json=no"], "--json: got 'no' (must stand alone: leave out =no)"),
    "dashes of a value": (["data", "build", "--end", "--"], "if it begins with a dash, --end=VALUE"),
    "unknown family": (
        ["train", "frob"],
        "train 'frob': no such family, corpus or file (families are gpt, llama, neox, ngram, mlp, rnn, gru, lstm, "
        "seq2seq, t5, bert, bert-classifier, bert-tagger, bert-embedder, bow-classifier, word2vec;",
    ),
    "nearly a family": (["train", "lstmm"], "did you mean lstm?)"),
    "nearly a corpus": (["train", "pydok"], "did you mean pydoc?)"),
    "unknown corpus": (["train", "gpt", "pydok"], "did you mean pydoc?"),
    "missing file": (["train", "gpt", "none.txt"], "none.txt: no such file"),
    "directory for a file": (
        ["train", "gpt", "."],
        ".: a directory without token shards (must be a file, or made by: chainrule data build .",
    ),
    "directory for a text": (["ladder", "."], "not a regular file"),
    "empty file": (["train", "gpt", "empty.txt"], "empty.txt: no text in 0 bytes"),
    "binary file": (["train", "gpt", "binary.txt"], "binary.txt: binary file, zero byte in line 2"),
    "not UTF-8": (["train", "gpt", "latin.txt"], "latin.txt: line 3 is not UTF-8, byte 0xe9"),
    "short text": (["train", "gpt", "short.txt"], "27 tokens, --block-size 128"),
    "heads": (["train", "gpt", "text.txt", "--n-head", "3"], "--n-embd is 128, --n-head 3"),
    "zero width": (["train", "gpt", "text.txt", "--n-embd", "0"], "--n-embd is 0 (must be at least 1)"),
    "negative rate": (["train", "gpt", "text.txt", "--lr", "-1"], "--lr is -1.0 (must be a positive number)"),
    "no steps": (["train", "gpt", "text.txt", "--max-steps", "0"], "--max-steps is 0 (must be at least 1)"),
    "full directory": (["train", "gpt", "text.txt", "--out", "."], "the directory is not empty"),
    "file in the way": (
        ["train", "gpt", "text.txt", "--out", "text.txt/run"],
        "text.txt/run: cannot be written",
    ),
    "no such memory": (
        ["train", "gpt", "text.txt", "--n-embd", "4000000000"],
        "GiB to train, this machine has",
    ),
    "resume nothing": (["train", "--resume", "none"], "none: no such directory"),
    "sample what": (
        ["sample"],
        "RUN is missing (must be given: directory of a run, one of its checkpoints, or anything",
    ),
    "sample nothing": (["sample", "none"], "none: no such directory"),
    "sample no run": (["sample", "."], ".: holds no checkpoint"),
}


def test_help_for_a_group_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "--help"])
    assert "data list" in capsys.readouterr().out


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    folder: Path, capfd: pytest.CaptureFixture[str], case: str
) -> None:
    Path("nothing").mkdir()
    Path("ragged.csv").write_text("text,label\na,b\nc,d,e\n")
    Path("empty.txt").write_bytes(b"")
    Path("binary.txt").write_bytes(b"\x7fELF\n\0")
    Path("latin.txt").write_bytes("un\ndeux\nd\xe9j\xe0".encode("latin-1"))
    Path("short.txt").write_text("To be, or not to be, that is so.\n"[:30])
    args, message = BAD[case]
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert message in err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--temperature", "-1"], "--temperature is -1.0"),
        (["--max-new-tokens", "-1"], "--max-new-tokens is -1 (must be an integer, from 0 to"),
        (["--top-k", "0"], "--top-k is 0"),
        (
            ["--weights", "int3"],
            "--weights: got 'int3' (must be one of bf16, fp16, fp32, int4, int8, q4_0, q4_1, q8_0, stored; did you",
        ),
        (["--prompt", "\N{SNOWMAN}"], "unknown character '\N{SNOWMAN}' (U+2603) at position 0"),
    ],
)
def test_bad_options_of_a_good_run(
    folder: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    main(["train", "text.txt", *SMALL, "--max-steps", "1", "--out", "run"])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["sample", "run", *flags])
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_a_resume_with_other_settings_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "text.txt", *SMALL, "--max-steps", "2", "--out", "run"])
    Path("other.txt").write_text("To be, or not to be")
    for flags, message in [
        (["--n-layer", "2"], "resume: --n-layer is 2, in the run 1 (leave it out)"),
        (["--out", "elsewhere"], "resume: --out is elsewhere, the run is in run (leave it out)"),
        (["other.txt"], "resume: data is other.txt, in the run "),
    ]:
        with pytest.raises(SystemExit):
            main(["train", "gpt", "--resume", "run", *flags])
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "--resume", "run/checkpoints/step_000002"])
    assert "is a checkpoint (must be the directory of its run)" in capsys.readouterr().err
    main(["train", "gpt", "text.txt", *SMALL, "--max-steps", "2", "--resume", "run"])  # the same: agreed


def test_a_directory_that_cannot_be_written_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(SystemExit) as stop:
        main(["train", "text.txt", *SMALL, "--out", "run"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: run: cannot be used for a run (Permission denied)\n"


def test_help_and_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("chainrule.cli.render.wrap.MOST_WIDTH", 200)
    for args in ([], ["--help"], ["-h"]):
        main(args)
        out = capsys.readouterr().out
        assert all(
            re.search(rf"^  {name}  +{about}$", out, re.M) for name, (_, about) in COMMANDS.items() if about
        )
    main(["--version"])
    assert capsys.readouterr().out == f"chainrule {cr.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*name.split(), "--help"])
    assert stop.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"Example: (?:\S+=\S+ )?chainrule {name.split()[0]}", out)


def test_doctor_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    out = capsys.readouterr().out
    for word in ("chainrule", "python", "cpu", "threads", "native", "blas", "numpy"):
        assert re.search(rf"^{word} +\S", out, re.MULTILINE)


def test_data_list(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CHAINRULE_DATA", str(folder))
    main(["data", "list"])
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names[:5] == ["pydoc", "stdlib", "identifiers", "docstrings", "text"]
    assert "names" in names[5:] and "not here yet: chainrule data get names" in lines[names.index("names")]
    main(["data", "list", "--json"])
    assert list(json.loads(capsys.readouterr().out)) == names


def test_the_command_line_starts_without_the_heavy_rooms() -> None:
    code = "import sys, chainrule.cli; print({'numpy', 'rich', 'chainrule.train'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("module", ["numpy", "chainrule.models", "chainrule.train"])
def test_an_interrupt_while_modules_load_is_one_line(module: str, number: str) -> None:
    code = f"""
import os, signal, sys

class Impatient:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.{number})

sys.meta_path.insert(0, Impatient())
from chainrule.cli import main
main(["train", "gpt", "none.txt"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "interrupted\n", 130)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupt_before_the_first_step_takes_back_what_was_begun(folder: Path, number: str) -> None:
    """The signal comes when config.toml is to be written."""
    code = f"""
import os, signal
from chainrule.cli import main
from chainrule.runs import Run
Run.keep_settings = lambda self, text: os.kill(os.getpid(), signal.{number})
main(["train", "gpt", "text.txt", *{SMALL}, "--max-steps", "5", "--out", "begun"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stderr.splitlines()[-1], done.returncode) == ("interrupted", 130)
    begun = run("train", "gpt", "text.txt", *SMALL, "--max-steps", "5", "--out", "begun")
    assert begun[0] == 0


def test_what_was_killed_while_it_began_is_begun_again(folder: Path) -> None:
    Path("begun").mkdir()
    Path("begun/log.jsonl").touch()
    Path("begun/.config.toml.1234567.partial").write_text("max_st")
    assert run("train", "gpt", "text.txt", *SMALL, "--max-steps", "5", "--out", "begun")[0] == 0


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    main(["train", "text.txt", *SMALL, "--max-steps", "1", "--out", "run"])
    process = start("sample", "run", "--max-new-tokens", "2000")
    assert process.stdout and process.stderr
    process.stdout.read(5)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 141


@pytest.mark.skipif(os.name != "posix", reason="elsewhere names are always Unicode")
def test_names_and_prompts_in_a_locale_that_knows_ascii_only(folder: Path) -> None:
    Path("ümlaut.txt").write_text("Über Ümlaute. " * 400, encoding="utf-8")
    plain = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "chainrule.cli"]
    train = [*command, "train", "gpt", "ümlaut.txt", *SMALL, "--max-steps", "1", "--out", "läufe"]
    done = subprocess.run(train, capture_output=True, encoding="utf-8", env=plain)
    assert done.returncode == 0, done.stderr
    assert 'data = "ümlaut.txt"' in Path("läufe/config.toml").read_text(encoding="utf-8")
    sample = [*command, "sample", "läufe", "--prompt", "Ü", "--max-new-tokens", "1"]
    done = subprocess.run(sample, capture_output=True, encoding="utf-8", env=plain)
    assert done.returncode == 0 and "Ü" in done.stdout, done.stderr


def test_a_name_that_is_not_utf_8_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["train", "gpt", "\udcfcmlaut.txt", "--out", "run"],
        ["sample", "run", "--prompt", "\udcfc"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(words)
        error = capsys.readouterr().err
        assert stop.value.code == 2 and "'\\udcfc" in error and "not UTF-8 (must be" in error
        assert error.count("\n") == 1 and not Path("run").exists()
