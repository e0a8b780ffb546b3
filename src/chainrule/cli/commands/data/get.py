"""`chainrule data get`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import show


@dataclass(frozen=True)
class Command(Reporting):
    """Fetch a named corpus into the cache and check it against its hash. Nothing else opens a connection.

    Example: chainrule data get tinyshakespeare
    """

    name: Annotated[str, Argument("NAME")] = "names"
    """Name of the corpus; `chainrule data list` shows all."""

    def run(self) -> None:
        done = 0
        with Progress(f"fetch {self.name}") as progress:

            def fetched(size: int) -> None:
                nonlocal done
                done += size
                progress.say(f"{done / 1e6:.1f} MB")

            path = cr.data.downloads.get(self.name, fetched)
        wanted = cr.data.downloads.NAMED[self.name]
        found = {"name": self.name, "path": str(path), "bytes": wanted.bytes, "sha256": wanted.sha256}
        show(found | {"licence": wanted.license, "source": wanted.url}, self.json)
