"""Tables, the markers in README, and what a run writes where."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import benchmarks
import pytest
from benchmarks import __main__ as program
from benchmarks.harness import ROOT, Measured, Unavailable
from benchmarks.peers.decode import compared
from benchmarks.report import (
    HEADER,
    Row,
    Table,
    between_markers,
    headlines_of,
    machine_of,
    markdown,
    middle_and_best,
    milliseconds,
    not_measured,
    page,
    readme_block,
)

MODULES = [m.name for m in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")]
PAGE = "before\n<!-- speed: begin -->\nold\n<!-- speed: end -->\nafter\n"


def test_every_program_can_be_imported_without_its_peers() -> None:
    names = [m for m in MODULES if not m.endswith(("_torch", "__main__"))]
    peers = ["torch", "jax", "tokenizers", "tiktoken", "sentencepiece", "gensim", "gguf"]
    code = f"import sys; sys.modules.update(dict.fromkeys({peers})); import {', '.join(names)}"
    assert len(names) > 20
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_every_benchmark_of_the_command_exists() -> None:
    for name in program.MINUTES:
        assert callable(importlib.import_module(f"benchmarks.peers.{name}").measure)


def test_only_what_is_between_the_markers_changes() -> None:
    assert between_markers(PAGE, "speed", "new\n") == PAGE.replace("old", "new")
    twice = between_markers(between_markers(PAGE, "speed", "one"), "speed", "two")
    assert twice == PAGE.replace("old", "two")


@pytest.mark.parametrize(
    "broken", ["", PAGE + PAGE, PAGE.replace("begin", "x"), "<!-- speed: end --> <!-- speed: begin -->"]
)
def test_a_page_without_its_markers_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="markers: need"):
        between_markers(broken, "speed", "new")


def test_the_readme_has_a_place_for_the_speed_table() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "| new |" in between_markers(text, "speed", "| new |")


def test_tables_are_markdown() -> None:
    table = Table("Title", "About.", ["a", "b"], rows=[("1", "2")], notes=["Note."])
    assert markdown(["a", "b"], [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    text = page("steps", table, "Machine.")
    assert text.startswith("# Title\n\nWritten by `make bench ONLY=steps`") and text.endswith(
        "| 1 | 2 |\n\nNote.\n"
    )
    with pytest.raises(ValueError, match="a row has 1 cells, its header 2"):
        markdown(["a", "b"], [["1"]])


def test_times_have_three_digits() -> None:
    assert [milliseconds(ms) for ms in (0.1234, 12.34, 123.4, 1234)] == [
        "0.12 ms",
        "12.3 ms",
        "123 ms",
        "1.23 s",
    ]
    assert middle_and_best(Measured("", [30.0, 10.0, 20.0])) == "20.0 ms (10.0 ms)"


def test_a_row_that_was_not_measured_says_so() -> None:
    row = not_measured("decode", "llama.cpp not found", "9.60 ms")
    assert row == Row("decode", "9.60 ms", "not measured: llama.cpp not found", "–")
    text = page("decode", Table("Decode", "", ["a"], headlines=[row]), "Machine.")
    assert "| decode | 9.60 ms | not measured: llama.cpp not found | – |" in readme_block({"decode": text})


def test_a_reason_of_any_text_stays_in_its_cell() -> None:
    row = not_measured("decode", "llama-bench: -p a|b\n\n| failed |  twice")
    text = page("decode", Table("Decode", "", ["a"], headlines=[row]), "Machine.")
    assert headlines_of(text) == [row] and "-p a&#124;b &#124; failed &#124; twice" in row.peer


def test_the_readme_has_rows_of_several_runs_each_with_its_machine() -> None:
    row = Row("a step", "1 ms", "peer 2 ms", "2.00")
    table = Table("T", "About.", ["a"], rows=[("1",)], headlines=[row], notes=["Note."])
    pages = {
        name: page(name, table, machine)
        for name, machine in zip("abc", ("One.", "Two.", "One."), strict=True)
    }
    assert headlines_of(pages["a"]) == [row] and machine_of(pages["b"]) == "Two."
    rows = markdown(HEADER, [row] * 3)
    assert readme_block(pages) == f"a, c: One.\n\nb: Two.\n\n{rows}"
    assert readme_block({"a": pages["a"]}) == f"One.\n\n{markdown(HEADER, [row])}"
    assert headlines_of(page("d", Table("T", "", ["a"]), "One.")) == []


def test_decoding_is_compared_with_the_fastest_peer_of_each_format() -> None:
    ours = Measured("Chainrule", [10.0])
    cases = [
        {
            "Chainrule": ours,
            "PyTorch": Measured("PyTorch", [40.0]),
            "llama.cpp": Measured("llama.cpp", [20.0]),
        },
        {"Chainrule": ours, "llama.cpp": Measured("llama.cpp", [9.0])},
        {"Chainrule": ours, "PyTorch": Measured("PyTorch", [30.0])},
        {"Chainrule": ours},
    ]
    row = compared("decode", cases, lambda ms: f"{ms:.0f}")
    assert row == Row(
        "decode",
        "10 / 10 / 10 / 10",
        "llama.cpp 20 / 9 / PyTorch 30 / not measured",
        "2.00 / 0.90 / 3.00 / –",
    )


def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *options: str, readme: bool = True) -> str:
    """Runs the command with benchmarks that take no time; the README it may have written.

    The repository is `tmp_path`; the results are in a folder of their own, and `readme` names the README.
    """

    def measure(threads: int, quick: bool) -> Table:
        return Table(
            "T",
            "About.",
            ["a"],
            rows=[("1",)],
            headlines=[Row("work", "1 ms", "peer 2 ms", "2.00")],
            notes=["Note."],
        )

    def gone(threads: int, quick: bool) -> Table:
        raise Unavailable("gensim is not installed")

    def module(name: str) -> SimpleNamespace:
        return SimpleNamespace(measure=gone if name.endswith("word2vec") else measure)

    path = tmp_path / "README.md"
    path.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(program.importlib, "import_module", module)
    monkeypatch.setattr(program, "describe_machine", lambda threads: "Machine.")
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "RESULTS", tmp_path / "benchmarks" / "results")
    named = ["--readme", str(path)] if readme else []
    if "--results" not in options:
        named += ["--results", str(tmp_path / "results")]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *options, *named])
    program.main()
    return path.read_text(encoding="utf-8")


def test_a_whole_run_writes_every_table_and_the_readme(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = fake(monkeypatch, tmp_path)
    assert sorted(p.stem for p in (tmp_path / "results").iterdir()) == sorted(program.README)
    assert written.count("| work | 1 ms | peer 2 ms | 2.00 |") == len(program.README) - 1
    assert "| word2vec | – | not measured: gensim is not installed | – |" in written
    assert written.startswith("before\n<!-- speed: begin -->\nMachine.") and written.endswith("after\n")
    assert markdown(HEADER, []) in written
    told = capsys.readouterr()
    assert "about 36 minutes: steps 15" in told.err
    assert told.out.startswith("Machine.\n\n") and told.out.endswith("Note.\n")


def test_a_part_of_a_run_replaces_its_own_rows_of_the_readme(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(monkeypatch, tmp_path)
    for path in (tmp_path / "results").iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace("| work |", "| before |"), encoding="utf-8")
    written = fake(monkeypatch, tmp_path, "--only", "bpe", "gemm")  # gemm has no rows there
    assert written.count("| work |") == 1 and written.count("| before |") == len(program.README) - 2
    assert written.index("| before |") < written.index("| work |")


def test_results_elsewhere_leave_the_readme_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unless it is named: its rows are those of the repository's own results."""
    assert fake(monkeypatch, tmp_path, readme=False) == PAGE
    own = ("--results", str(tmp_path / "more" / ".." / "benchmarks" / "results"))
    assert "| work | 1 ms |" in fake(monkeypatch, tmp_path, *own, readme=False)


def test_a_page_that_is_missing_costs_no_rows_of_the_readme(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fake(monkeypatch, tmp_path, "--only", "steps") == PAGE
    assert "README not written" in capsys.readouterr().err
    assert (tmp_path / "results" / "steps.md").exists()


def test_a_quick_run_leaves_the_readme_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert fake(monkeypatch, tmp_path, "--quick") == PAGE
    assert sorted(p.stem for p in (tmp_path / "results").iterdir()) == sorted(program.README)


def test_the_readme_says_what_the_results_say() -> None:
    pages = {name: (program.RESULTS / f"{name}.md").read_text(encoding="utf-8") for name in program.README}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert between_markers(readme, "speed", readme_block(pages)) == readme
