"""Hooks of the conformance report, and how tests run: the same everywhere and every time."""

from hypothesis import settings

from chainrule import native
from tests.conformance.plugin import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
)

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

collect_ignore = [] if native.available() else ["kernels"]  # no compiler, no kernels to test

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
