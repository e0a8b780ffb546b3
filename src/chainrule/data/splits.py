"""Splits into train, validation and test: the hash of a document decides its part.

So a document keeps its part when others are added, its copies land in the same part, and nothing has to be stored.
A text without documents is split by its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from chainrule.data.hashing import digest
from chainrule.data.read.documents import Document
from chainrule.errors import ConfigError
from chainrule.types import Ids
from chainrule.validate import Check

T = TypeVar("T")
Row = TypeVar("Row", Ids, str)


@dataclass(frozen=True)
class Parts:
    """Documents for training, for choosing settings (`validation`), and for the final evaluation.

    Settings chosen on the test set spoil it, so it is `sealed` and every opening is recorded.
    """

    train: list[Document] = field(default_factory=list)
    validation: list[Document] = field(default_factory=list)
    sealed: list[Document] = field(default_factory=list, repr=False)
    openings: list[str] = field(default_factory=list)
    """The reason of each opening of the test documents."""

    def open_test(self, why: str) -> list[Document]:
        """The test documents; `why` is added to `openings`."""
        self.openings.append(why)
        return self.sealed


@dataclass(frozen=True)
class Split:
    """Fractions for validation and test; the rest is for training.

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

    def held_back(
        self, rows: Iterable[T], text: Callable[[T], str], *, eval_only: bool = False
    ) -> tuple[list[T], list[T]]:
        """Examples to train on and to evaluate on, by their texts, or all to evaluate on; a part for test is left out.

        >>> from chainrule.data import Split
        >>> Split(validation=0.5, test=0).held_back(["emma", "ava", "isla", "mia"], str.lower)
        (['emma', 'ava', 'isla'], ['mia'])
        """
        parts: dict[str, list[T]] = {"train": [], "validation": [], "test": []}
        for row in rows:
            parts["validation" if eval_only else self.part(text(row))].append(row)
        return parts["train"], parts["validation"]

    def __call__(self, documents: Iterable[Document]) -> Parts:
        parts = Parts()
        place = {"train": parts.train, "validation": parts.validation, "test": parts.sealed}
        for document in documents:
            place[self.part(document.text)].append(document)
        return parts


def split(row: Row, fraction: float = 0.1) -> tuple[Row, Row]:
    """ids (n,) or a text -> (training, validation): the last `fraction` of it is for validation.

    The split depends only on the length, so all runs on a text are validated on the same part.
    """
    if not 0 < fraction < 1:
        raise ConfigError(f"split: fraction {fraction} (must be between 0 and 1)")
    first = len(row) - round(fraction * len(row))
    return row[:first], row[first:]
