"""Removing copies, near copies and low-quality texts, with counts by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.data.clean.minhash import Index, signature
from chainrule.data.clean.quality import Rule
from chainrule.data.hashing import digest
from chainrule.data.read.documents import Document
from chainrule.errors import ConfigError

COPY, NEAR = "copy", "near copy"


@dataclass
class Report:
    """Numbers of documents read and kept, and of documents dropped by reason, with the first example of each."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)  # reason -> "file:line"

    def drop(self, document: Document, reason: str) -> None:
        self.dropped[reason] += 1
        self.examples.setdefault(reason, f"{document.source}:{document.line}")

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "dropped": dict(self.dropped)}


class Cleaner:
    """Keeps the documents that break no rule and are not similar to one kept before.

    Documents of similarity `near` or more count as copies; None finds exact copies only. A kept document costs 16 bytes
    of memory, with `near` about 3 kB.

    >>> from chainrule.data import Cleaner, Document
    >>> texts = ["the cat sat on the mat today", "The cat  sat on the mat today", "quite another text"]
    >>> cleaner = Cleaner()
    >>> [document.text for document in cleaner(Document(text, "example") for text in texts)]
    ['the cat sat on the mat today', 'quite another text']
    >>> cleaner.report.dropped
    Counter({'near copy': 1})
    """

    def __init__(self, rules: Sequence[Rule] = (), near: float | None = 0.8) -> None:
        if near is not None and not 0.5 <= near <= 1:
            rule = "must be from 0.5 to 1: below, too many pairs are missed"
            raise ConfigError.of("dedup", {"near": near}, rule)
        self.rules = rules
        self.near = near
        self.report = Report()
        self._seen: set[bytes] = set()
        self._index = Index()

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            self.report.read += 1
            reason = self.why(document.text)
            if reason is None:
                self.report.kept += 1
                yield document
            else:
                self.report.drop(document, reason)

    def why(self, text: str) -> str | None:
        """The reason to drop a text, or None; a kept text counts as seen."""
        for rule in self.rules:
            if rule.broken(text):
                return rule.name
        name = digest(text)
        if name in self._seen:
            return COPY
        if self.near is not None:
            new = signature(text)
            if self._index.nearest(new)[1] >= self.near:
                return NEAR
            self._index.add(new)
        self._seen.add(name)
        return None
