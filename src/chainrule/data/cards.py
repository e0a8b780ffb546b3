"""Data cards: where every named corpus comes from, under which license, how it is verified, what it cannot show."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from chainrule.data.corpora import BUILT_IN, VERSION, available, load
from chainrule.data.downloads import NAMED
from chainrule.errors import DataError
from chainrule.suggest import hinted

INSIDE = "inside every CPython"


@dataclass(frozen=True)
class Card:
    """What should be known of a corpus before it is used."""

    name: str
    about: str
    origin: str
    license: str
    limits: str
    bytes: int | None = None
    """None: depends on the version of Python"""
    sha256: str | None = None

    def measured(self) -> dict[str, Any]:
        """All of it, with size and hash of what is here where they are not pinned"""
        found = vars(self)
        if self.sha256 is None:
            corpus = load(self.name)
            found = found | {"origin": f"{self.origin}, here {VERSION}"}
            found |= {"bytes": len(corpus.text.encode("utf-8", "surrogatepass")), "sha256": corpus.sha256}
        return found


CARDS = MappingProxyType(
    {name: Card(name, each.about, INSIDE, each.license, each.limits) for name, each in BUILT_IN.items()}
    | {
        name: Card(name, each.about, each.url, each.license, each.limits, each.bytes, each.sha256)
        for name, each in NAMED.items()
    }
)
"""Of every corpus that is built in or can be fetched"""


def card(name: str) -> Card:
    """The card of a corpus

    >>> import chainrule as cr
    >>> cr.data.card("stdlib").license
    'PSF-2.0'
    """
    if name not in CARDS:
        rule = hinted(f"must be one of {', '.join(CARDS)}", name, CARDS)
        said = "has no data card" if name in available() else "no such corpus"
        raise DataError(f"corpus {name!r}: {said} ({rule})")
    return CARDS[name]
