"""`chainrule data list`"""

from __future__ import annotations

from dataclasses import dataclass

import chainrule as cr
from chainrule.cli.render.tables import show


@dataclass(frozen=True)
class Command:
    """List the corpora that can be trained on: built in, the .txt files of $CHAINRULE_DATA, and what can be fetched.

    Example: CHAINRULE_DATA=~/texts chainrule data list
    """

    json: bool = False
    """Print one JSON object, name by name."""

    def run(self) -> None:
        corpora = cr.data.available()
        for name, wanted in cr.data.downloads.NAMED.items():
            corpora.setdefault(name, f"{wanted.about}; not here yet: chainrule data get {name}")
        show(corpora, self.json)
