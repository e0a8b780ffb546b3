"""`chainrule ladder`, from the command line to its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli import main
from tests.distributed.test_communicator import needs_mpi
from tests.distributed.together import together

TINY = ["--params", "700", "--steps", "5", "--seeds", "2", "--batch-size", "4", "--order", "3"]


def test_table_figure_and_record_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three two one. " * 400)
    main(["ladder", str(text), "--out", str(tmp_path / "out"), "--json", *TINY])
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert "note: these have more parameters than 700: GPT 788\n" in err
    assert printed == json.loads((tmp_path / "out/ladder.json").read_text())
    assert len(printed["rungs"]) == 9 and printed["settings"]["params"] == 700
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["ladder.json", "ladder.md", "ladder.png"]  # and no log: it is no run
    assert (tmp_path / "out/ladder.md").read_text().count("\n") == 11
    assert (tmp_path / "out/ladder.png").read_bytes().startswith(b"\x89PNG")


@needs_mpi
def test_ranks_train_the_networks_to_the_same_bits(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three two one. " * 400)
    main(["ladder", str(text), "--out", str(tmp_path / "one"), *TINY])
    done = together(3, "-m", "chainrule.cli", "ladder", str(text), "--out", str(tmp_path / "ranks"), *TINY)
    assert done.returncode == 0, done.stderr
    one, ranks = (
        json.loads((tmp_path / name / "ladder.json").read_text())["rungs"] for name in ("one", "ranks")
    )
    for rung in (*one, *ranks):
        del rung["seconds"]
    assert ranks == one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-text.txt"], "no such file"),
        (["--seeds", "0"], "--seeds is 0"),
        (["--workers", "0"], "--workers is 0"),
        (["--match", "luck"], "--match"),
        (["--params", "3"], "--params is 3 (must be at least "),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["ladder", *arguments, "--out", str(tmp_path / "out")])
    assert exit.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()
