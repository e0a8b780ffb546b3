"""Lists of names to learn to make more of: one per line, over an alphabet."""

from __future__ import annotations

import string
from typing import NamedTuple

from chainrule.data.read.documents import Document, Name, read_documents


class Names(NamedTuple):
    """Names over the alphabet, and the lines that were left out because of other characters."""

    names: list[str]
    strangers: list[Document]


def read_names(name: Name = "identifiers", alphabet: str = string.ascii_lowercase) -> Names:
    """The lines of a file, stripped and in lower case, without the empty ones.

    A few lines with characters outside the alphabet would taint every probability: they come back apart, for a person
    to look at.

    >>> from chainrule.data import read_names
    >>> found = read_names("identifiers")
    >>> "namedtuple" in found.names, found.strangers[0].text.isalpha()
    (True, False)
    """
    allowed = set(alphabet)
    found = Names([], [])
    for document in read_documents(name, by="line"):
        text = document.text.strip().lower()
        if not set(text) <= allowed:
            found.strangers.append(document)
        elif text:
            found.names.append(text)
    return found
