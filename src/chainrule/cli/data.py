"""`chainrule data list`"""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.data import available


@dataclass(frozen=True)
class Command:
    """List the corpora that can be trained on: built in, and the .txt files of $CHAINRULE_DATA.

    Example: CHAINRULE_DATA=~/texts chainrule data list
    """

    def run(self) -> None:
        corpora = available()
        width = max(map(len, corpora))
        for name, about in corpora.items():
            print(f"{name:<{width}}  {about}")
