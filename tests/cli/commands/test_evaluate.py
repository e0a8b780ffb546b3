"""`chainrule eval`: how often test data were opened for a run is counted, printed, and part of its report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.runs import RunFolder

SIZES = ["--n-layer", "1", "--n-head", "1", "--n-embd", "8", "--block-size", "16", "--batch-size", "2"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    text = cr.data.load("pydoc").text
    (tmp_path / "book.txt").write_text(text[:4000])
    (tmp_path / "test.txt").write_text("".join(c for c in text[4000:6000] if c in text[:3000]))
    main(
        [
            "train",
            "gpt",
            str(tmp_path / "book.txt"),
            *SIZES,
            "--max-steps",
            "2",
            "--out",
            str(tmp_path / "run"),
        ]
    )
    return tmp_path / "run"


def openings(run: Path, capsys: pytest.CaptureFixture[str], *data: Path) -> int | None:
    capsys.readouterr()
    main(["eval", str(run), *map(str, data), "--json"])
    found = json.loads(capsys.readouterr().out)
    count: int | None = found.get("openings")
    return count


@pytest.mark.requirement("R-512")
def test_each_look_at_test_data_is_counted_and_printed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test, other = run.parent / "test.txt", run.parent / "other.txt"
    other.write_text(test.read_text()[:500])
    assert openings(run, capsys) is None  # its own validation text: every evaluation in training has seen it
    assert [openings(run, capsys, test) for _ in range(3)] == [1, 2, 3]
    assert openings(run, capsys, other) == 1
    test.rename(run.parent / "renamed.txt")
    assert openings(run, capsys, run.parent / "renamed.txt") == 4  # the same text by another name
    checkpoint = RunFolder(run).saved()[-1]
    assert openings(checkpoint, capsys, other) == 2
    main(["eval", str(run), str(other)])
    assert "openings" in (out := capsys.readouterr().out) and "3 of this data for this run" in out
    assert "makes its result too good" in out


@pytest.mark.requirement("R-512")
def test_the_report_of_a_run_prints_the_count(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = run.parent / "test.txt"
    main(["runs", "report", str(run)])
    assert "Test data" not in (run / "report.html").read_text()
    for _ in range(2):
        openings(run, capsys, test)
    main(["runs", "report", str(run)])
    page = (run / "report.html").read_text()
    assert "Test data, and how often they were opened" in page and "test.txt" in page
    assert page.count(">2<") >= 1


def test_a_text_that_was_trained_on_is_no_test(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert openings(run, capsys, run.parent / "book.txt") is None
    assert not RunFolder(run).openings.exists()


def test_a_line_that_was_cut_short_counts_as_none(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.open_test("a.txt", "1") == 1
    with folder.openings.open("a") as file:
        file.write('{"data": "a.txt", "sh\n[1]\n')
    assert folder.open_test("a.txt", "1") == 2 and folder.open_test("b.txt", "2") == 1


def test_a_run_that_cannot_be_written_to_is_evaluated_all_the_same(tmp_path: Path) -> None:
    assert RunFolder(tmp_path / "gone").open_test("a.txt", "1") is None


@pytest.mark.requirement("R-514")
def test_a_directory_of_seeds_is_evaluated_with_a_standard_error(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds, test = run.parent / "seeds", run.parent / "test.txt"
    main(
        [
            "train",
            "gpt",
            str(run.parent / "book.txt"),
            *SIZES,
            "--max-steps",
            "2",
            "--seeds",
            "3",
            "--out",
            str(seeds),
        ]
    )
    capsys.readouterr()
    main(["eval", str(seeds), str(test), "--json"])
    found = json.loads(capsys.readouterr().out)
    losses = [each["bits_per_byte"] for each in found["runs"].values()]
    assert found["seeds"] == len(losses) == 3 and len({*losses}) == 3
    assert found["mean"]["bits_per_byte"] == pytest.approx(np.mean(losses))
    assert found["standard_error"]["bits_per_byte"] == pytest.approx(np.std(losses, ddof=1) / 3**0.5)
    main(["eval", str(seeds), str(test)])
    out = capsys.readouterr().out
    assert "3 seeds in" in out and f"{np.mean(losses):.4f} ± {np.std(losses, ddof=1) / 3**0.5:.4f}" in out
    assert "2 of this data for this run" in out
