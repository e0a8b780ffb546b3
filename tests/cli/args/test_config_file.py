"""Settings from a file: `--config`, `--print-config`, and flags with underscores."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from chainrule.cli import main
from chainrule.cli.args.config_file import toml
from chainrule.runs.load import load
from chainrule.scaling.budget import Choice
from chainrule.text import BPETokenizer

TINY = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--max-steps", "2"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("some text to learn from, again and again. " * 50)


def printed(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    main(["train", "gpt", *words, "--print-config"])
    return tomllib.loads(capsys.readouterr().out)


def refused(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["train", *words])
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_default_then_file_then_flag(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text('n_layer = 6\nlr = 1e-4\nbias = false\n[data]\ndata = "text.txt"\n')
    found = printed("--config", "run.toml", "--lr", "2e-4", capsys=capsys)
    assert (found["n_layer"], found["lr"], found["bias"], found["data"]) == (6, 2e-4, False, "text.txt")
    assert found["n_head"] == 4 and found["family"] == "gpt"
    again = printed("--lr=3e-4", "other.txt", "--config=run.toml", "--bias", capsys=capsys)
    assert (again["lr"], again["bias"], again["data"]) == (3e-4, True, "other.txt")


def test_what_is_printed_can_be_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["text.txt", *TINY, "--dropout", "0.25", "--seed", "7"]
    main(["train", "gpt", *words, "--print-config"])
    text = capsys.readouterr().out
    Path("again.toml").write_text(text)
    main(["train", "gpt", "--config", "again.toml", "--print-config"])
    assert capsys.readouterr().out == text
    main(["train", "gpt", "--config", "again.toml", "--out", "run", "--json"])
    assert json.loads(capsys.readouterr().out)["steps"] == 2
    assert Path("run/config.toml").read_text() == text


def test_what_the_file_says_of_the_command_is_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text('out = "runs/mine"\njson = true\nlr = 1\nweight_decay = 0\nbudget = "10m"\n')
    found = printed("--config", "run.toml", capsys=capsys)
    assert (found["out"], found["json"], found["lr"], found["budget"]) == ("runs/mine", True, 1.0, 600.0)
    assert not {"out", "json"} & printed(capsys=capsys).keys()


def test_flags_with_underscores_are_the_same_flags(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed("--n_layer=3", "--block_size", "32", "--batch_size=8", capsys=capsys)
    assert (found["n_layer"], found["block_size"], found["batch_size"]) == (3, 32, 8)


def test_the_rate_follows_the_family_and_where_the_weights_come_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def rate(*words: str) -> object:
        main(["train", *words, "--print-config"])
        return tomllib.loads(capsys.readouterr().out)["lr"]

    families = {"gpt": 3e-3, "lstm": 3e-3, "seq2seq": 1e-3, "bert": 2e-3, "bert-tagger": 1e-3}
    assert {family: rate(family) for family in families} == families
    main(["train", "gpt", "text.txt", *TINY, "--out", "a"])
    assert "starts from" not in capsys.readouterr().out
    begun = ["gpt", "text.txt", "--init", "a", "--max-steps", "1"]
    assert rate(*begun) == pytest.approx(3e-4) and rate(*begun, "--lr", "3e-3") == 3e-3
    main(["train", *begun, "--out", "b"])
    assert "starts from a: lr is 0.0003, a tenth" in capsys.readouterr().out
    settings = tomllib.loads(Path("b/config.toml").read_text())
    assert settings["lr"] == pytest.approx(3e-4) and settings["init"] == "a"
    main(["train", "gpt", "--resume", "b"])  # the rate of the run, not that of the family
    assert "the run is finished" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("n_layers = 6", "unknown option 'n_layers' (did you mean n_layer?)"),
        ("n_layer = 'six'", 'run.toml: n_layer is "six" (must be an integer, without quotes)'),
        ("n_layer = [6]", "run.toml: n_layer is [6] (must be an integer, without quotes)"),
        ("n_layer = true", "run.toml: n_layer is true (must be an integer, without quotes)"),
        ("n_layer = 6.0", "run.toml: n_layer is 6.0 (must be an integer, without quotes)"),
        ('bias = "no"', 'run.toml: bias is "no" (must be true or false, without quotes)'),
        ("bias = 1", "run.toml: bias is 1 (must be true or false, without quotes)"),
        ('lr = "1e-3"', 'run.toml: lr is "1e-3" (must be a number, without quotes)'),
        ("schedule = 1", "run.toml: schedule is 1 (must be a text in quotes)"),
        ("out = false", "run.toml: out is false (must be a text in quotes)"),
        ("data = true", "run.toml: data is true (must be a text in quotes)"),
        (
            "budget = true",
            "run.toml: budget is true (must be a number of seconds, or a time such as 10m or 1.5h, without quotes)",
        ),
        ("n_layer = ", "run.toml: is not valid TOML"),
        ('family = "rnn"', "family is 'rnn' (must be gpt: say train rnn)"),
        ("lr = -1.0", "--lr is -1.0 (must be a positive number)"),
    ],
)
def test_a_file_with_a_fault_is_refused_in_one_line(
    content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("run.toml").write_text(content)
    err = refused("gpt", "text.txt", "--config", "run.toml", capsys=capsys)
    assert message in err and err.count("\n") == 1


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "none.toml: cannot be read" in refused("gpt", "--config", "none.toml", capsys=capsys)
    assert "--config: no value" in refused("gpt", "--config", capsys=capsys)


def test_texts_are_quoted() -> None:
    settings = {"data": 'ä "b" \\c\n\td', "n": 1, "x": 1e-9, "yes": True, "none": None}
    assert tomllib.loads(toml(settings)) == {"data": 'ä "b" \\c\n\td', "n": 1, "x": 1e-9, "yes": True}


@pytest.fixture
def choice(monkeypatch: pytest.MonkeyPatch) -> Choice:
    """What is chosen for any budget, without timing this machine."""
    text = Path("text.txt").read_text()
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
    training = {"batch_size": 4, "lr": 1e-3, "eval_every": 50, "save_every": 60}
    chosen = Choice(BPETokenizer.train(text, 280), sizes, training, 1000, 10, 1.0, (1.0, 2.0), 60.0)
    monkeypatch.setattr("chainrule.cli.args.runs.new.choose", lambda *_: chosen)
    return chosen


@pytest.mark.usefixtures("choice")
def test_what_is_given_is_not_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    budget = ["--budget", "0.05", "--json"]
    main(["train", "gpt", "text.txt", *budget, "--eval-every", "7", "--out", "flag"])
    settings = tomllib.loads(Path("flag/config.toml").read_text())
    assert (settings["eval_every"], settings["save_every"], settings["n_embd"]) == (7, 60, 16)
    Path("run.toml").write_text("n_layer = 2\nn_head = 1\nn_embd = 8\nblock_size = 8\neval_every = 9\n")
    main(["train", "gpt", "text.txt", *budget, "--config", "run.toml", "--out", "file"])
    settings = tomllib.loads(Path("file/config.toml").read_text())
    assert (settings["n_layer"], settings["n_embd"], settings["eval_every"]) == (2, 8, 9)
    assert "chosen" in capsys.readouterr().err


def test_the_record_of_a_run_on_a_budget_repeats_it(
    choice: Choice, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["train", "gpt", "text.txt", "--budget", "0.05", "--out", "first", "--json"])
    settings = tomllib.loads(Path("first/config.toml").read_text())
    assert "max_steps" not in settings and settings["tokenizer"] == "first"
    monkeypatch.delattr("chainrule.cli.args.runs.new.choose")  # nothing is left to choose
    main(["train", "gpt", "--config", "first/config.toml", "--out", "second", "--json"])
    assert Path("second/config.toml").read_bytes() == Path("first/config.toml").read_bytes()
    assert load("second")[1] == choice.tokenizer
    main(["train", "gpt", "--resume", "second", "--config", "second/config.toml"])  # agrees with itself
    assert "the run is finished" in capsys.readouterr().out


@pytest.mark.usefixtures("choice")
def test_a_file_that_leaves_the_choice_open_is_printed_so(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed("text.txt", "--budget", "9", "--save-every", "5", capsys=capsys)
    assert found["budget"] == 9.0 and found["save_every"] == 5
    assert not {"n_layer", "lr", "batch_size", "max_steps", "eval_every"} & set(found)


@pytest.mark.parametrize(
    ("flags", "kept"),
    [(["--lr", "7e-4"], {"lr": 7e-4}), (["--batch-size", "3"], {"batch_size": 3}), ([], {})],
    ids=str,
)
def test_sizes_for_a_budget_go_with_settings_that_are_given(
    flags: list[str], kept: dict[str, float], choice: Choice, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["train", "gpt", "text.txt", "--budget", "0.05", *flags, "--out", "run"])
    out = capsys.readouterr().out
    settings = tomllib.loads(Path("run/config.toml").read_text())
    assert {name: settings[name] for name in kept} == kept and settings["n_embd"] == choice.sizes["n_embd"]
    assert out.count("chosen: ") == 1 and out.count("about 10 steps") == 1  # one forecast
    assert "forecast: 0:00 of training; " in out
    same_unit = r"^\d\.\d\d bits per byte; expected 1\.00 to 2\.00( after 10 steps .*)?$"
    assert re.search(same_unit, out, re.M)


@pytest.mark.usefixtures("choice")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["gpt", "--n-layer", "1"], "n_layer given: they are chosen if none of them is"),
        (["gpt", "--tokenizer", "char", "--block-size", "8"], "block_size, tokenizer given: they are"),
        (["mlp", "--eval-windows", "8"], "they are chosen for gpt and llama"),
    ],
    ids=str,
)
def test_a_budget_that_chooses_no_sizes_says_why(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    family, *flags = words
    main(["train", family, "text.txt", *flags, "--budget", "0.05", "--warmup", "1", "--out", "run"])
    out = capsys.readouterr().out
    assert f"budget: decides the number of steps, not the sizes ({why}" in out and "expected" not in out


@pytest.mark.usefixtures("choice")
def test_a_number_of_steps_beside_a_budget_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "gpt", "text.txt", "--budget", "0.05", "--max-steps", "7", "--out", "run"])
    out = capsys.readouterr().out
    assert "max_steps 7 does not count: the budget decides" in out and "chosen: " in out
