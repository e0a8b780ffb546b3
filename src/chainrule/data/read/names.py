"""Lists of names, one per line, over an alphabet: data for models that invent names."""

from __future__ import annotations

import string
from typing import NamedTuple

from chainrule.data.read.documents import Document, Name, read_documents


class Names(NamedTuple):
    """Names over the alphabet, and the lines rejected for other characters."""

    names: list[str]
    rejected: list[Document]


def read_names(name: Name = "identifiers", alphabet: str = string.ascii_lowercase) -> Names:
    """The lines of a file, stripped and lowercased, without empty ones.

    A few lines with characters outside the alphabet would change every probability, so they are returned separately as
    `rejected`.

    >>> from chainrule.data import read_names
    >>> found = read_names("identifiers")
    >>> "namedtuple" in found.names, found.rejected[0].text.isalpha()
    (True, False)
    """
    allowed = set(alphabet)
    found = Names([], [])
    for document in read_documents(name, by="line"):
        text = document.text.strip().lower()
        if not set(text) <= allowed:
            found.rejected.append(document)
        elif text:
            found.names.append(text)
    return found
