"""The help of a command: what must be given, what may be, and what counts without it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest

from chainrule.cli import main


def shown(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main([*words, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_usage_and_defaults(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = shown("vectors", capsys=capsys)
    assert out.startswith("usage: chainrule vectors RUN [WORD ...] [OPTIONS]\n")
    assert "(required)" in out and "--n INT                 Words to show. (default: 10)\n" in out
    assert "--json " in out and "--no-json" not in out and "None" not in out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("Example: "))


@pytest.mark.parametrize("words", [[], ["runs"], ["train", "gpt"], ["sample"], ["doctor"]])
def test_a_narrow_terminal_is_enough(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    with suppress(SystemExit):
        main([*words, "--help"])
    out = capsys.readouterr().out
    long = [line for line in out.splitlines() if len(line) > 40 and not line.startswith("Example: ")]
    assert out.startswith("usage: chainrule") and long == []


def test_a_switch_that_is_on_shows_how_to_turn_it_off(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown("train", "gpt", capsys=capsys)
    assert "--bias, --no-bias" in out and "(default: on)" in out and "--vocab-size" not in out
    assert "--vocab-size" in shown("count", "gpt", capsys=capsys)


def test_no_help_loads_a_room_that_only_the_work_needs() -> None:
    code = """
import sys
from chainrule.cli import COMMANDS, main
for name in COMMANDS:
    try:
        main([*name.split(), "--help"])
    except SystemExit as stop:
        assert stop.code == 0
rooms = ["data", "doctor", "generate.session", "inspect", "io", "lessons", "runs", "tasks", "text", "train.trainer"]
print(sorted({"rich", *(f"chainrule.{room}" for room in rooms)} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n" and "--n-layer INT" in done.stdout and done.stdout.count("usage: ") > 35


@pytest.mark.parametrize(
    ("family", "fixed", "free"),
    [("bert-classifier", "n-embd 128", "n-layer"), ("bow-classifier", "lr 0.05", "l2")],
)
def test_defaults_that_follow_the_data(
    family: str, fixed: str, free: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = {
        part.split()[0]: " ".join(part.split())
        for part in shown("train", family, capsys=capsys).split("\n  --")
    }
    name, value = fixed.split()
    assert entries[name].endswith(f"(default: {value})")
    assert all(entries[each].endswith("(default: by the number of texts)") for each in (free, "max-steps"))
    assert entries["decay"].endswith("(default: 0.5)")
