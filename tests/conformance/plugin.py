"""Pytest hooks: the `requirement` mark, and the record of which requirements the tests settle.

    @pytest.mark.requirement("R-083", "R-361")
    @pytest.mark.requirement("R-134", declared="docs/...")   # the docs settle it; the test checks that they do

`pytest --conformance FILE` writes a record of the marked tests that ran and of the vectors they read;
tests/conformance/report.py turns such records into the report.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainrule import native
from tests import vectors
from tests.conformance.record import Record, digest
from tests.conformance.requirements import out_of_scope, requirements


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--conformance", metavar="FILE", type=Path, help="record what the tests settle in FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "requirement(*ids, declared=page): what this test settles, R-001 .. R-520"
    )
    if config.getoption("--conformance"):
        if single := [arg for arg in config.args if "::" in arg]:
            raise pytest.UsageError(f"--conformance: {single[0]} is part of a file (record whole files)")
        config.pluginmanager.register(Recorder(config), "conformance-recorder")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        ids = marked_with(item)
        if unknown := [id for id in ids if id not in requirements()]:
            raise pytest.UsageError(f"{item.nodeid}: unknown requirement {', '.join(map(repr, unknown))}")
        if excluded := [id for id in ids if id in out_of_scope()]:
            raise pytest.UsageError(f"{item.nodeid}: settles {', '.join(excluded)}, declared out of scope")
        if ids:
            item.user_properties.append(("requirements", ids))  # travels with the report, xdist included


def marked_with(item: pytest.Item) -> list[str]:
    return [id for mark in item.iter_markers("requirement") for id in mark.args]


class Recorder:
    """Collects test reports in the main process; xdist workers send back what they read and left out."""

    def __init__(self, config: pytest.Config) -> None:
        self.path: Path = config.getoption("--conformance")
        self.sources = digest()
        self.settles: dict[str, list[str]] = {}  # test -> requirement ids
        self.outcome: dict[str, str] = {}  # test -> passed, or how its first other phase ended
        self.vectors: set[str] = set()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for item in items:
            if ids := marked_with(item):
                self.settles[item.nodeid], self.outcome[item.nodeid] = ids, "deselected"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = dict(report.user_properties).get("requirements")
        if ids:
            self.settles[report.nodeid] = ids
            if self.outcome.get(report.nodeid, "passed") == "passed":
                self.outcome[report.nodeid] = report.outcome

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        output = getattr(node, "workeroutput", {})
        self.vectors |= set(output.get("vectors", []))
        for test, ids in output.get("deselected", {}).items():
            self.settles[test], self.outcome[test] = ids, "deselected"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if hasattr(session.config, "workeroutput"):
            out = session.config.workeroutput
            out["vectors"] = sorted(vectors.used)
            out["deselected"] = {t: ids for t, ids in self.settles.items() if self.outcome[t] == "deselected"}
            return
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return  # an interrupted run says nothing about the tests it did not reach
        tests = [
            {"test": test, "requirements": ids, "outcome": self.outcome[test]}
            for test, ids in sorted(self.settles.items())
        ]
        read = sorted(self.vectors | vectors.used)
        Record(self.sources, native.built_from(), tests, read).write(self.path)
