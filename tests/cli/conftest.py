"""What all tests of the command line share."""

from __future__ import annotations

import pytest

from chainrule.cli.render import progress


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine is no reason to say more: what is told of long waits has tests of its own."""
    monkeypatch.setattr(progress, "PATIENCE", 600.0)
