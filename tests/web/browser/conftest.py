"""The Studio on a real server, for the browser of tests/browser.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from chainrule.cli.commands.studio import HOST, listening
from chainrule.web.app import create_app
from tests.web.conftest import trained
from tests.web.families import make_families, make_flat

WIDTHS = (390, 1440)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of runs of the server, with two that were trained."""
    folder = tmp_path_factory.mktemp("studio") / "runs"
    trained(folder / "one", lr=0.01)
    trained(folder / "two", lr=0.02)
    return folder


@pytest.fixture(scope="session")
def families(runs: Path) -> str:
    """The directory, in that of the server, with a run of each family."""
    make_families(runs / "all")
    return "all"


@pytest.fixture(scope="session")
def flat(runs: Path) -> Path:
    """The directory, in that of the server, with a bag of words and vectors of words."""
    return make_flat(runs / "flat")


@pytest.fixture(scope="session")
def address(runs: Path) -> Iterator[str]:
    bound = listening(0)
    server = uvicorn.Server(
        uvicorn.Config(create_app(runs), log_level="warning", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://{HOST}:{bound.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page that fails the test on errors in its console and on requests that leave the machine."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=address)
    found = context.new_page()
    wrong: list[str] = []
    found.on(
        "console",  # a refusal is an answer, told in words on the page
        lambda message: (
            message.type in ("error", "warning")
            and "status of 400" not in message.text
            and wrong.append(message.text)
        ),
    )
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on(
        "request",
        lambda request: request.url.startswith((address, "data:", "blob:")) or wrong.append(request.url),
    )
    found.set_default_timeout(15_000)
    yield found
    context.close()
    assert wrong == []


@pytest.fixture
def fits(page: Any) -> Any:
    """Check that nothing of the present view is cut off, on a telephone and on a desk."""

    def check() -> None:
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(50)
            assert page.evaluate("document.documentElement.scrollWidth") <= width

    return check
