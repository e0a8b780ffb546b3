"""The conformance report: what counts as settled, and how a test run is recorded."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from chainrule import native
from tests.conformance import report
from tests.conformance.marks import Mark, scan
from tests.conformance.record import ROOT, Record, digest, native_digest, read
from tests.conformance.requirements import out_of_scope, requirements
from tests.vectors import records as all_vectors

pytest_plugins = ["pytester"]


def record(*tests: tuple[str, list[str], str]) -> Record:
    entries = [{"test": name, "requirements": ids, "outcome": outcome} for name, ids, outcome in tests]
    return Record(digest(), native_digest(), entries, ["der-gelu"])


def test_all_requirements_are_listed_once() -> None:
    assert list(requirements()) == [f"R-{n:03d}" for n in range(1, 521)]
    areas = Counter(r.area for r in requirements().values())
    assert (len(areas), areas["A"], areas["S"], areas["AD"]) == (30, 20, 19, 13)
    assert all(r.statement and r.check and r.kind in "FXVPO" for r in requirements().values())
    assert requirements()["R-005"].check == "L.grad == 1"


def test_out_of_scope_names_known_requirements_with_a_reason() -> None:
    assert set(out_of_scope()) <= set(requirements())
    assert all(len(reason) > 20 for reason in out_of_scope().values())


def test_one_failing_test_leaves_a_requirement_unsettled() -> None:
    run = record(("t1", ["R-001", "R-002"], "passed"), ("t2", ["R-002"], "failed"))
    text = list(report.lines([run], []))
    second, third = requirements()["R-002"], requirements()["R-003"]
    assert text[0] == "A 1/20  Scalar autograd and computation graphs"
    assert text[1] == f"    R-002 unsettled (t2 failed): {second.statement}. Check: {second.check}"
    assert text[2] == f"    R-003 unsettled (no test): {third.statement}. Check: {third.check}"
    assert text[-3:] == [f"vectors used 1 of {len(all_vectors())}", "declared 0", "settled 1 of 520"]


def test_records_of_several_runs_add_up() -> None:
    both = [record(("t1", ["R-001"], "passed")), record(("peer", ["R-520", "R-001"], "passed"))]
    assert list(report.lines(both, []))[-1] == "settled 2 of 520"
    both.append(record(("later", ["R-001"], "failed")))
    assert list(report.lines(both, []))[-1] == "settled 1 of 520"


def test_a_marked_test_that_did_not_run_or_asserts_nothing_settles_nothing() -> None:
    run = record(("t1[1]", ["R-001"], "passed"), ("t2", ["R-002"], "passed"), ("t3", ["R-003"], "passed"))
    marks = [Mark("t1", ("R-001",)), Mark("t2", ("R-002",), asserts=False), Mark("other", ("R-003",))]
    found = report.outcomes([run], marks)
    assert found == {"R-001": [], "R-002": ["t2 asserts nothing"], "R-003": ["other did not run"]}
    assert report.missing([run], marks, {"A"})[:2] == ["R-002", "R-003"]


def test_what_the_docs_settle_is_counted_apart() -> None:
    run = record(("t1", ["R-001"], "passed"), ("t2", ["R-002"], "passed"))
    marks = [Mark("t1", ("R-001",), declared="docs/page.md"), Mark("t2", ("R-002",))]
    text = list(report.lines([run], marks))
    assert text[:2] == ["A 1/20  Scalar autograd and computation graphs", "    R-001 declared: docs/page.md"]
    assert text[-2:] == ["declared 1", "settled 1 of 520"]
    assert report.missing([run], marks, {"A"})[0] == "R-003"


def test_out_of_scope_is_listed_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "out_of_scope", lambda: {"R-001": "needs a quantum computer"})
    text = list(report.lines([record()], []))
    assert text[1] == "    R-001 out of scope: needs a quantum computer"
    assert "out of scope 1" in text


def test_a_record_of_other_sources_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "scan", lambda root: [])
    path = tmp_path / "tests.json"
    assert report.main([str(path)]) == report.NO_RECORD
    Record("another digest", None, [], []).write(path)
    assert report.main([str(path)]) == report.NO_RECORD
    assert "made from other sources" in capsys.readouterr().err
    Record(digest(), "another digest", [], []).write(path)
    assert report.main([str(path)]) == report.NO_RECORD
    assert "made with a C++ extension built from other sources" in capsys.readouterr().err
    record(("t1", ["R-001"], "passed")).write(path)
    assert report.main([str(path)]) == 0
    assert report.main(["--require", "B", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "settled 1 of 520"


@pytest.mark.skipif(not native.available(), reason="no extension")
def test_the_extension_says_what_it_was_built_from() -> None:
    """Any hash will do here; whether it is that of the present sources is for the report."""
    assert re.fullmatch("[0-9a-f]{64}", str(native.built_from()))


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


def test_every_marked_test_asserts_something_and_every_page_is_there() -> None:
    marks = scan(ROOT)
    assert len(marks) > 500
    assert [mark.test for mark in marks if not mark.asserts] == []
    declared = {id: mark.declared for mark in marks if mark.declared for id in mark.requirements}
    assert set(declared) == {"R-134", "R-306", "R-318", "R-448", "R-508"}
    assert [page for page in declared.values() if not (ROOT / page).is_file()] == []


MARKED = """
    import numpy as np
    import pytest

    def compare(a, b):
        np.testing.assert_allclose(a, b)

    def check_nothing(a):
        return a

    @pytest.mark.requirement("R-001")
    def test_by_a_helper():
        compare(1, 1)

    @pytest.mark.requirement("R-002", "R-003", declared="docs/page.md")
    def test_by_an_error():
        with pytest.raises(ValueError):
            int("x")

    @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.requirement("R-004"))])
    def test_by_a_vector(n):
        vector(n).check(n)

    @pytest.mark.requirement("R-005")
    class TestAll:
        def test_in_a_class(self):
            gradcheck_model(self.model, lambda: 0)

        def test_only_runs(self):
            "assert in words"
            assert True
            compute(1)
            check_nothing(2)

    def test_unmarked():
        pass
"""


def test_marks_are_read_from_the_sources(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(textwrap.dedent(MARKED))
    assert scan(tmp_path) == [
        Mark("tests/test_it.py::test_by_a_helper", ("R-001",)),
        Mark("tests/test_it.py::test_by_an_error", ("R-002", "R-003"), declared="docs/page.md"),
        Mark("tests/test_it.py::test_by_a_vector", ("R-004",)),
        Mark("tests/test_it.py::TestAll::test_in_a_class", ("R-005",)),
        Mark("tests/test_it.py::TestAll::test_only_runs", ("R-005",), asserts=False),
    ]


SUITE = """
    import pytest
    from tests.vectors import vector

    @pytest.mark.requirement("R-001")
    def test_good():
        assert vector("der-gelu").recomputed

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
        assert written.extension == native.built_from()
        assert report.outcomes([written]) == {
            "R-001": ["test_records_what_ran.py::test_mixed[2] failed"],
            "R-002": ["test_records_what_ran.py::test_mixed[2] failed"],
            "R-003": ["test_records_what_ran.py::test_skipped skipped"],
        }

    @pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["one process", "a worker"])
    def test_what_is_deselected_is_recorded(self, suite: pytest.Pytester, workers: list[str]) -> None:
        suite.makepyfile(test_it=SUITE)
        suite.runpytest_subprocess("--conformance", "record.json", "-k", "good or 1", *workers)
        assert report.outcomes([read(suite.path / "record.json")]) == {
            "R-001": ["test_it.py::test_mixed[2] deselected"],
            "R-002": ["test_it.py::test_mixed[2] deselected"],
            "R-003": ["test_it.py::test_skipped deselected"],
        }

    def test_single_tests_are_not_recorded(self, suite: pytest.Pytester) -> None:
        suite.makepyfile(test_it=SUITE)
        result = suite.runpytest_subprocess("--conformance", "record.json", "test_it.py::test_mixed")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*test_mixed is part of a file (record whole files)*"])

    def test_an_unknown_requirement_is_an_error(self, suite: pytest.Pytester) -> None:
        suite.makepyfile("import pytest\n@pytest.mark.requirement('R-521')\ndef test_it(): pass")
        result = suite.runpytest_subprocess()
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*test_it: unknown requirement 'R-521'*"])

    def test_an_interrupted_run_leaves_no_record(self, suite: pytest.Pytester) -> None:
        suite.makepyfile("def test_it(): raise KeyboardInterrupt")
        assert suite.runpytest_subprocess("--conformance", "record.json").ret == pytest.ExitCode.INTERRUPTED
        assert not (suite.path / "record.json").exists()
