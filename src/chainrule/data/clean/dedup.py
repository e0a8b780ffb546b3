"""Removing copies, near copies and low-quality texts, with counts by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from chainrule.data.clean.minhash import Index, Signature, signature
from chainrule.data.clean.quality import Rule
from chainrule.data.hashing import digest
from chainrule.data.read.documents import Document, batched
from chainrule.distributed import in_order
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

    def __call__(self, documents: Iterable[Document], workers: int = 1) -> Iterator[Document]:
        """The documents that are kept. Several `workers` measure texts at the same time; what is kept is the same."""
        work = partial(_measured, self.rules, self.near is not None)
        for document, measures in chain.from_iterable(in_order(work, batched(documents), workers)):
            self.report.read += 1
            reason = self._why(measures)
            if reason is None:
                self.report.kept += 1
                yield document
            else:
                self.report.drop(document, reason)

    def why(self, text: str) -> str | None:
        """The reason to drop a text, or None; a kept text counts as seen."""
        return self._why(_measures(self.rules, self.near is not None, text))

    def _why(self, measures: Measures) -> str | None:
        if measures.broken is not None:
            return measures.broken
        if measures.name in self._seen:
            return COPY
        if self.near is not None and measures.signature is not None:
            if self._index.nearest(measures.signature)[1] >= self.near:
                return NEAR
            self._index.add(measures.signature)
        self._seen.add(measures.name)
        return None


class Measures(NamedTuple):
    """What is compared of a text."""

    broken: str | None
    """The name of a rule that it breaks; then nothing else is measured."""
    name: bytes = b""
    signature: Signature | None = None


def _measures(rules: Sequence[Rule], near: bool, text: str) -> Measures:
    broken = next((rule.name for rule in rules if rule.broken(text)), None)
    if broken is not None:
        return Measures(broken)
    return Measures(None, digest(text), signature(text) if near else None)


def _measured(
    rules: Sequence[Rule], near: bool, documents: list[Document]
) -> list[tuple[Document, Measures]]:
    """Of each document, maybe in a process of a pool."""
    return [(document, _measures(rules, near, document.text)) for document in documents]
