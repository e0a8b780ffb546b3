"""What a person who waits is told, on a terminal and in a pipe."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rich.console import Console

from chainrule.cli import main
from chainrule.cli.render import progress
from chainrule.cli.render.progress import Progress
from chainrule.data import Document, load


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_told_on_stderr_however_long_one_step_takes(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PATIENCE", "REFRESH", "PLAIN"):
        monkeypatch.setattr(progress, name, 0.01)
    console = Console(stderr=True, force_terminal=terminal, width=80)
    with Progress("documents", console) as shown:
        for _ in shown.documents([Document("x" * 3 * 10**5, "test")]):
            time.sleep(0.3)
    out, err = capsys.readouterr()
    assert out == "" and "documents: 1 document, 0.3 million characters, 0 s" in err
    assert err.count("documents:") >= 2


def test_nothing_is_told_of_what_is_quick(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 2.0)
    with Progress("blink"):
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "problem", [OSError("the terminal is gone"), SystemExit(1), ValueError("closed file")]
)
def test_a_console_that_fails_takes_nothing_down(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    console = Console(stderr=True, force_terminal=True)

    def fails(*_: object, **__: object) -> None:
        raise problem

    for name in ("print", "status"):
        monkeypatch.setattr(console, name, fails)
    with Progress("work", console) as shown:
        shown.teller.join(10)
        assert not shown.teller.is_alive()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["data", "stats", "text.txt"], "documents:"),
        (["ngram", "text.txt"], "reading and counting:"),
        (["train", "word2vec", "text.txt", "--dim", "8"], "training:"),
        (["train", "gpt", "text.txt", "--n-layer", "1", "--max-steps", "1"], "reading:"),
        (["tokenize", "train", "text.txt", "--vocab-size", "300"], "learning bpe from 0.1 MB:"),
        (["tokenize", "encode", "text.txt"], "encoding:"),
    ],
)
def test_commands_tell_a_pipe_how_far_they_are(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    Path("text.txt").write_text(load("pydoc").text[:60_000], encoding="utf-8")
    main(words)
    assert told in capsys.readouterr().err
