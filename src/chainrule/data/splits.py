"""Train, validation and test: which part a document belongs to is written in its own hash.

So a document stays where it is when others are added, copies of it land on the same side, and nothing has to be stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from chainrule.data.hashing import digest
from chainrule.data.read.documents import Document
from chainrule.validate import Check


@dataclass(frozen=True)
class Parts:
    """Documents to learn from (`train`), to choose settings by (`validation`), and to judge with at the end.

    Whoever chooses by the test set has no test set: it is `sealed`, and every opening is written down.
    """

    train: list[Document] = field(default_factory=list)
    validation: list[Document] = field(default_factory=list)
    sealed: list[Document] = field(default_factory=list, repr=False)
    openings: list[str] = field(default_factory=list)
    """Why the test documents were looked at, once for each time."""

    def open_test(self, why: str) -> list[Document]:
        """The test documents; `why` joins the `openings`."""
        self.openings.append(why)
        return self.sealed


@dataclass(frozen=True)
class Split:
    """Shares of validation and test; the rest is for training.

    >>> from chainrule.data import Split
    >>> [Split(validation=0.1, test=0.1).part(name) for name in ("emma", "ava", "isla")]
    ['train', 'train', 'train']
    """

    validation: float = 0.1
    test: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        check = Check("split", self)
        leaves = self.validation >= 0 and self.test >= 0 and self.validation + self.test < 1
        check.require(leaves, "validation", "test", rule="must leave some for training")
        check.seed()

    def part(self, text: str) -> str:
        """ "train", "validation" or "test" """
        number = int.from_bytes(digest(text, salt=self.seed)[:8], "little") / 2**64  # uniform in [0, 1)
        if number < self.test:
            return "test"
        return "validation" if number < self.test + self.validation else "train"

    def __call__(self, documents: Iterable[Document]) -> Parts:
        parts = Parts()
        place = {"train": parts.train, "validation": parts.validation, "test": parts.sealed}
        for document in documents:
            place[self.part(document.text)].append(document)
        return parts
