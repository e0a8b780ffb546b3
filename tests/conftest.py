"""Hooks of the conformance report, and how tests run: the same everywhere and every time."""

import signal

from hypothesis import settings

from chainrule import native
from chainrule.cli.render import progress
from tests.browser import browser
from tests.conformance.plugin import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["browser", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

collect_ignore = [] if native.available() else ["kernels"]  # no compiler, no kernels to test

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # processes that tests start and interrupt inherit it

progress.PATIENCE = 3600.0  # or a busy machine says "reading: 2 s" before what a test expects on stderr

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
