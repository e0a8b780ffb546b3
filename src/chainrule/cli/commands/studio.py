"""`chainrule studio`"""

from __future__ import annotations

import socket
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Annotated
from urllib.parse import urlencode

from chainrule.cli.args.options import Argument
from chainrule.errors import ConfigError, Setting

HOST = "127.0.0.1"
USUAL = 8420  # taken if it is free, so that the address stays the same
DRAIN = 2.0  # seconds for answers that are under way when it ends


@dataclass(frozen=True)
class Command:
    """Open the Studio: a page in your browser that shows runs, tokens and every gradient. Only this machine sees it.

    Example: chainrule studio runs --port 8420
    """

    folder: Annotated[Path, Argument("DIRECTORY")] = Path("runs")
    """Directory of runs and imported models; new runs are made there. Of a single one the microscope opens."""
    port: int | None = None
    """Port to listen on. Default: 8420, or one that is free."""
    open: bool = True
    """Open the browser."""

    def run(self) -> None:
        try:
            from chainrule.runs import RunFolder
            from chainrule.serve.http.server import serve
            from chainrule.web.app import create_app
        except ModuleNotFoundError as error:
            if error.name not in ("fastapi", "uvicorn", "latex2mathml", "starlette"):
                raise
            rule = "install it with: pip install 'chainrule[studio]'"
            raise ConfigError(f"studio: {error.name} is not installed ({rule})") from None
        if self.folder.is_file() and not RunFolder(self.folder).is_model:
            raise ConfigError(f"{self.folder}: is a file (must be a directory of runs, or a model)")
        bound = listening(self.port)
        folder, path = place(self.folder)
        address = f"http://{HOST}:{bound.getsockname()[1]}{path}"

        def ready() -> None:
            there = "are in" if folder.exists() else "will be in the new directory"
            print(f"Chainrule Studio  {address}\nCtrl-C ends it. Runs {there} {folder}/", flush=True)
            if self.open:
                Timer(0.1, webbrowser.open, (address,)).start()

        serve(create_app(folder, deep=not path), bound, ready, DRAIN)


def place(folder: Path) -> tuple[Path, str]:
    """The directory of runs, and the view to open: of a single run or model the microscope, beside its neighbors."""
    from chainrule.runs import RunFolder

    path = folder.resolve()
    found = RunFolder(path)
    if not (found.log.is_file() or found.is_model):
        return folder, ""
    return path.parent, f"/microscope?{urlencode({'run': path.name})}"


def listening(port: int | None) -> socket.socket:
    """A socket on the port; without one on the usual port, or on any that is free."""
    if port is not None and not 0 <= port <= 65535:
        raise ConfigError("studio: ", Setting("port"), f" is {port} (must be from 1 to 65535; 0 for any)")
    for each in (USUAL, 0) if port is None else (port,):
        # By its protocol asyncio knows that it may send at once: else each answer waits 40 ms for the browser.
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, each))
            bound.listen(128)  # from now on who comes early waits instead of being refused
            return bound
        except OSError as error:
            bound.close()
            reason = error
    raise ConfigError(
        "studio: ",
        Setting("port"),
        f" is {port} ({(reason.strerror or str(reason)).lower()}; choose another)",
    )
