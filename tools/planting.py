"""Runs tests on mutants. Each mutant has a process of its own, and no file is written.

A mistake inside a function is planted after the tests are collected: a copy of the process gets the changed code, so
that imports are paid for once. Any other (a default, a constant of a module) is planted before: the import takes the
changed text in place of the file.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop
from tools.mutants import Mutant

SECONDS = 900  # by the clock: for a mutant that waits for ever
MEMORY = 8 << 30  # bytes of addresses
SPARE = 20  # seconds of CPU beyond four times what the tests take
KILLED, SURVIVED, BROKEN = b"k", b"s", b"b"

Tests = Sequence[str]


class BrokenTests(Exception):
    """Tests that fail on the sources as they are say nothing about mutants."""


def try_mutants(tests: Tests, mutants: Sequence[Mutant]) -> Iterator[bool]:
    """For each mutant whether the tests kill it; without one they must pass."""
    reader, writer = os.pipe()

    def collect_and_try() -> int:
        os.close(reader)
        return run_pytest(tests, Planter(tests, mutants, writer))

    child = fork(collect_and_try)
    os.setpgid(child, child)
    os.close(writer)
    try:
        for _ in mutants:
            answer = os.read(reader, 1)
            if answer not in (KILLED, SURVIVED):
                raise BrokenTests(f"{' '.join(tests)} fails without a mutant: mend it first")
            yield answer == KILLED
    except BaseException:  # interrupted: its copies end with it
        os.killpg(child, signal.SIGKILL)
        raise
    finally:
        os.close(reader)
        wait(child, SECONDS)


class Planter:
    """A plugin of pytest: in place of running the collected tests once, runs them once for each mutant."""

    def __init__(self, tests: Tests, mutants: Sequence[Mutant], answers: int) -> None:
        self.tests, self.mutants, self.answers = tests, mutants, answers

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        def run(mutant: Mutant | None) -> int:
            if mutant is not None:
                plant(mutant)
            pytest_runtestloop(session)  # raises at the first failure
            return int(session.testsfailed > 0)

        before = used()
        if session.testsfailed or wait(fork(lambda: run(None)), SECONDS) != 0:
            os.write(self.answers, BROKEN)
            return True
        limit = int(SPARE + 4 * (used() - before))
        for mutant in self.mutants:
            if mutant.in_function:
                code = wait(fork(lambda mutant=mutant: run(mutant), limit), SECONDS)
            else:
                code = wait(fork(lambda mutant=mutant: imported(self.tests, mutant), limit), SECONDS)
            os.write(self.answers, SURVIVED if code == 0 else KILLED)
        return True


def imported(tests: Tests, mutant: Mutant) -> int:
    """The tests in a new Python that imports the mutant."""
    program = "import sys; from tools.planting import *; sys.exit(run_on_import(sys.argv[1:]))"
    place = [str(mutant.path), mutant.text]
    os.execv(sys.executable, [sys.executable, "-c", program, *place, *tests])


def run_on_import(arguments: list[str]) -> int:
    path, text, *tests = arguments
    import_instead(path, text)
    return run_pytest(tests)


def run_pytest(tests: Tests, *plugins: object) -> int:
    """pytest without a word; ends at the first failure."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], list(plugins)))


def fork(work: Callable[[], int], cpu_limit: int = 0) -> int:
    """The id of a copy of this process that does some work and ends with its result."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        if cpu_limit:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, cpu_limit))
        code = work()
    finally:
        os._exit(code)


def wait(child: int, seconds: float) -> int:
    """The exit code of a process, which is ended when its time is up."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def used() -> float:
    """Seconds of CPU of the processes that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def plant(mutant: Mutant) -> None:
    """Give every function of the file the code it has in the mutant."""
    path = str(mutant.path)
    new = {place(code): code for code in codes(compile(mutant.text, path, "exec", dont_inherit=True))}
    for function in [found for found in gc.get_objects() if isinstance(found, FunctionType)]:
        code = function.__code__
        if os.path.realpath(code.co_filename) == path and place(code) in new:
            function.__code__ = new[place(code)]


def codes(code: CodeType) -> Iterator[CodeType]:
    """All code in some code: functions in modules, classes and functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def place(code: CodeType) -> tuple[str, int, tuple[str, ...]]:
    """What tells the functions of a file apart; a mutant has its lines where the file has them."""
    return code.co_qualname, code.co_firstlineno, code.co_varnames[: code.co_argcount]


def import_instead(path: str, text: str) -> None:
    """Importing the file at `path` runs this text."""
    plain = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> Any:
        found = self.get_filename(fullname)
        if os.path.realpath(found) == path:
            return compile(text, found, "exec", dont_inherit=True)
        return plain(self, fullname)

    SourceFileLoader.get_code = get_code
