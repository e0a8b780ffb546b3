"""Pytest hooks: the `requirement` mark, and the record of which requirements the tests settle.

    @pytest.mark.requirement("R-083", "R-361")

`pytest --conformance FILE` writes a record of the marked tests that ran and of the vectors they read;
tests/conformance/report.py turns such records into the report.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import vectors
from tests.conformance.record import Record, digest
from tests.conformance.requirements import out_of_scope, requirements


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--conformance", metavar="FILE", type=Path, help="record what the tests settle in FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): what this test settles, R-001 .. R-520")
    if config.getoption("--conformance"):
        config.pluginmanager.register(Recorder(config), "conformance-recorder")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        ids = [id for mark in item.iter_markers("requirement") for id in mark.args]
        if unknown := [id for id in ids if id not in requirements()]:
            raise pytest.UsageError(f"{item.nodeid}: unknown requirement {', '.join(map(repr, unknown))}")
        if excluded := [id for id in ids if id in out_of_scope()]:
            raise pytest.UsageError(f"{item.nodeid}: settles {', '.join(excluded)}, declared out of scope")
        if ids:
            item.user_properties.append(("requirements", ids))  # travels with the report, xdist included


class Recorder:
    """Collects test reports in the main process; xdist workers only send back the vectors they read."""

    def __init__(self, config: pytest.Config) -> None:
        self.path: Path = config.getoption("--conformance")
        self.sources = digest()
        self.settles: dict[str, list[str]] = {}  # test -> requirement ids
        self.passed: dict[str, bool] = {}  # test -> every phase passed
        self.vectors: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = dict(report.user_properties).get("requirements")
        if ids:
            self.settles[report.nodeid] = ids
            self.passed[report.nodeid] = report.passed and self.passed.get(report.nodeid, True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.vectors |= set(getattr(node, "workeroutput", {}).get("vectors", []))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["vectors"] = sorted(vectors.used)
            return
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return  # an interrupted run says nothing about the tests it did not reach
        tests = [
            {"test": test, "requirements": ids, "passed": self.passed[test]}
            for test, ids in sorted(self.settles.items())
        ]
        Record(self.sources, tests, sorted(self.vectors | vectors.used)).write(self.path)
