"""Names of other programs: every one leads to something that is there."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

from chainrule.cli import COMMANDS as OURS
from chainrule.cli import main
from chainrule.cli.args.familiar import COMMANDS, OPTIONS, command_hint, option_hint
from chainrule.cli.args.options import options_of
from chainrule.cli.args.runs.training import FITTED


def flags_of(name: str) -> list[str]:
    file, colon, kind = OURS[name][0].partition(":")
    module = importlib.import_module(f"chainrule.cli.commands.{file}")
    command = module.command(kind, ["gpt"] if name == "count" else []) if colon else module.Command
    return [option.flag for option in options_of(command)]


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1
    return err


def test_every_name_stands_once_and_is_no_command_of_ours() -> None:
    for table in (COMMANDS, OPTIONS):
        counts = Counter(name for names in table.values() for name in names)
        assert [name for name, count in counts.items() if count > 1] == []
    first = {name.split()[0] for name in OURS}
    assert not first & {name for names in COMMANDS.values() for name in names}


def test_every_command_and_flag_that_is_named_exists() -> None:
    flags = {flag for name in OURS for flag in flags_of(name)} | {"--help", "--version"}
    for ours in OPTIONS:
        assert isinstance(ours, str) or {each for each in ours if " " not in each} <= flags
    sentences = [
        each for ours in OPTIONS for each in ([ours] if isinstance(ours, str) else ours) if " " in each
    ]
    for said in [*COMMANDS, *sentences]:
        assert set(re.findall(r"--[a-z][a-z0-9-]*", said)) <= flags
        for words in re.findall(r"chainrule ([a-z]+(?: [a-z]+)?)", said):
            assert words in OURS or words.split()[0] in OURS


def test_an_entry_of_flags_is_offered_only_where_the_command_has_one() -> None:
    assert option_hint("--epochs", ["--epochs", "--lr"]) == "use --epochs"
    assert option_hint("--num_epochs", ["--max-steps"]).startswith(
        "use --max-steps: training is planned in steps"
    )
    assert option_hint("--epochs", ["--json"]) == "" and command_hint("frobnicate") == ""
    assert set(FITTED) <= set(OURS) | {name.split()[-1] for name in OURS}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("train gpt book.txt --learning-rate 1e-3", "--learning-rate: unknown option (use --lr)"),
        ("train gpt book.txt --epochs 3", "use --max-steps: training is planned in steps"),
        ("train gpt book.txt --steps 3", "(use --max-steps)"),
        ("train gpt book.txt --batch=3", "--batch=3: unknown option (use --batch-size)"),
        ("train gpt book.txt --layers 3", "(use --n-layer)"),
        ("train gpt book.txt --hidden 3", "(use --n-embd)"),
        ("train word2vec book.txt --hidden_size 3", "(use --dim)"),
        ("train gpt book.txt --device cuda", "everything runs on the CPU; CHAINRULE_THREADS=2"),
        ("train gpt book.txt --nproc-per-node 4", "train together with: mpiexec -n 4 chainrule train"),
        ("train gpt book.txt --zero-stage 1", "(use --shard-optimizer)"),
        ("tokenize encode book.txt --tokenizer bpe.json", "--tokenizer: unknown option (use --vocab)"),
        ("train gpt book.txt --vocab-size 4000", "(use --tokenizer bpe:4000, or the path of a tokenizer)"),
        ("train --model gpt book.txt", "the family comes first, as in chainrule train gpt DATA"),
        ("sample --model run", "it is given by its place: RUN, without a name before it"),
        ("tokenize train book.txt --size 4000", "--size: unknown option (use --vocab-size)"),
        ("sample run -n 20", "(use --max-new-tokens)"),
        ("sample run --num_beams 4", "(use --beam)"),
        ("finetune run book.txt", "'finetune': no such command (use: chainrule tune BASE DATA)"),
        ("deploy run", "use: chainrule serve MODEL"),
        ("predict run", "use: chainrule sample RUN --prompt TEXT"),
        ("generate", "use: chainrule sample RUN"),
        ("fit book.txt", "use: chainrule train FAMILY DATA"),
        ("test run", "use: chainrule eval RUN"),
        ("train --config c.toml", "c.toml: unknown option 'learning_rate' (use --lr)"),
    ],
)
def test_familiar_names_get_the_right_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text("learning_rate = 1\n")
    assert hint in refused(words.split(), capsys)


def test_the_usage_of_train_shows_the_family(capsys: pytest.CaptureFixture[str]) -> None:
    for words, usage in ((["train"], "train [FAMILY] [DATA]"), (["train", "lstm"], "train lstm [DATA]")):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: chainrule {usage} [OPTIONS]\n")
