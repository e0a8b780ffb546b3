"""The conformance report: what counts as settled, and how a test run is recorded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conformance import report
from tests.conformance.record import ROOT, Record, digest, read
from tests.conformance.requirements import out_of_scope, requirements
from tests.vectors import records as all_vectors

pytest_plugins = ["pytester"]


def record(*tests: tuple[str, list[str], bool]) -> Record:
    entries = [{"test": name, "requirements": ids, "passed": passed} for name, ids, passed in tests]
    return Record(digest(), entries, ["der-gelu"])


def test_all_requirements_are_listed_once() -> None:
    assert list(requirements()) == [f"R-{n:03d}" for n in range(1, 521)]
    areas = Counter(r.area for r in requirements().values())
    assert (len(areas), areas["A"], areas["S"], areas["AD"]) == (30, 20, 19, 13)
    assert all(r.statement and r.kind in "FXVPO" for r in requirements().values())


def test_out_of_scope_names_known_requirements_with_a_reason() -> None:
    assert set(out_of_scope()) <= set(requirements())
    assert all(len(reason) > 20 for reason in out_of_scope().values())


def test_one_failing_test_leaves_a_requirement_unsettled() -> None:
    text = list(report.lines([record(("t1", ["R-001", "R-002"], True), ("t2", ["R-002"], False))]))
    assert text[0] == "A 1/20  Scalar autograd and computation graphs"
    assert text[1] == "    R-002 failed: t2"
    assert text[2] == f"    R-003 unsettled: {requirements()['R-003'].statement}"
    assert text[-2:] == [f"vectors used 1 of {len(all_vectors())}", "settled 1 of 520"]


def test_records_of_several_runs_add_up() -> None:
    both = [record(("t1", ["R-001"], True)), record(("peer", ["R-520", "R-001"], True))]
    assert list(report.lines(both))[-1] == "settled 2 of 520"
    both.append(record(("later", ["R-001"], False)))
    assert list(report.lines(both))[-1] == "settled 1 of 520"


def test_out_of_scope_is_listed_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "out_of_scope", lambda: {"R-001": "needs a quantum computer"})
    text = list(report.lines([record()]))
    assert text[1] == "    R-001 out of scope: needs a quantum computer"
    assert "out of scope 1" in text


def test_a_record_of_other_sources_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tests.json"
    assert report.main([str(path)]) == report.NO_RECORD
    Record("another digest", [], []).write(path)
    assert report.main([str(path)]) == report.NO_RECORD
    assert "made from other sources" in capsys.readouterr().err
    record(("t1", ["R-001"], True)).write(path)
    assert report.main([str(path)]) == 0
    assert report.main(["--require", "B", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "settled 1 of 520"


def test_the_digest_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.py"
    seen = {digest(tmp_path)}
    for content in ("x = 1", "x = 2"):
        file.write_text(content)
        seen.add(digest(tmp_path))
    file.rename(tmp_path / "src" / "b.py")
    seen.add(digest(tmp_path))
    assert len(seen) == 4


SUITE = """
    import pytest
    from tests.vectors import vector

    @pytest.mark.requirement("R-001")
    def test_good():
        vector("der-gelu").recomputed

    @pytest.mark.requirement("R-001", "R-002")
    @pytest.mark.parametrize("n", [1, 2])
    def test_mixed(n):
        assert n == 1

    @pytest.mark.requirement("R-003")
    def test_skipped():
        pytest.skip("a skipped test settles nothing")

    def test_unmarked():
        pass
"""


class TestPlugin:
    @pytest.fixture
    def suite(self, pytester: pytest.Pytester) -> pytest.Pytester:
        pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
        pytester.makeini(f"[pytest]\npythonpath = {ROOT}\n")
        return pytester

    @pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "two workers"])
    def test_records_what_ran(self, suite: pytest.Pytester, workers: list[str]) -> None:
        suite.makepyfile(SUITE)
        result = suite.runpytest_subprocess("--conformance", "out/record.json", "--strict-markers", *workers)
        result.assert_outcomes(passed=3, failed=1, skipped=1)
        written = read(suite.path / "out" / "record.json")
        assert written.vectors == ["der-gelu"]
        assert report.outcomes([written]) == {
            "R-001": ["test_records_what_ran.py::test_mixed[2]"],
            "R-002": ["test_records_what_ran.py::test_mixed[2]"],
            "R-003": ["test_records_what_ran.py::test_skipped"],
        }

    def test_an_unknown_requirement_is_an_error(self, suite: pytest.Pytester) -> None:
        suite.makepyfile("import pytest\n@pytest.mark.requirement('R-521')\ndef test_it(): pass")
        result = suite.runpytest_subprocess()
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*test_it: unknown requirement 'R-521'*"])

    def test_an_interrupted_run_leaves_no_record(self, suite: pytest.Pytester) -> None:
        suite.makepyfile("def test_it(): raise KeyboardInterrupt")
        assert suite.runpytest_subprocess("--conformance", "record.json").ret == pytest.ExitCode.INTERRUPTED
        assert not (suite.path / "record.json").exists()
