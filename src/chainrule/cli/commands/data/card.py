"""`chainrule data card`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.render.tables import show


@dataclass(frozen=True)
class Command(Reporting):
    """Show the data card of a corpus: where it comes from, its license, size and hash, and what it cannot show.

    Example: chainrule data card tinyshakespeare
    """

    name: Annotated[str, Argument("NAME")] = "pydoc"
    """Name of the corpus; `chainrule data list` shows all."""

    def run(self) -> None:
        show(cr.data.card(self.name).measured(), self.json)
