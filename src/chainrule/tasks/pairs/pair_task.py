"""Pairs of texts: what tasks on them share, the data and what is held back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chainrule.data import PairCorpus, Split, load_pairs
from chainrule.data.read.tabular.suspect import refuse_pairs
from chainrule.errors import DataError
from chainrule.tasks.task import Task
from chainrule.text import Tokenizer

SPLIT = Split(validation=0.05, test=0.0)
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class PairTask(Task):
    """Pairs of texts; a twentieth of them, chosen by the hash of the first text, is for evaluation."""

    find = staticmethod(load_pairs)
    default: ClassVar[str] = "docstrings"
    counted: ClassVar[str] = "pairs"
    corpus: PairCorpus
    tokenizer: Tokenizer
    training: Pairs
    validation: Pairs

    @classmethod
    def texts(cls, data: PairCorpus, *, held_out: bool) -> list[str]:
        return texts_of(list(data.pairs) if held_out else held_back(data)[0])

    def amount(self) -> str:
        """How much data there are, in words."""
        held_out = f"{len(self.validation):,} to evaluate on"
        return f"{len(self.training):,} pairs of {self.corpus.name} and {held_out}"


def texts_of(pairs: Pairs) -> list[str]:
    """Both sides of each pair."""
    return [text for pair in pairs for text in pair]


def held_back(data: PairCorpus, least: int = 1) -> tuple[Pairs, Pairs]:
    """Pairs to train on and to evaluate on, at least so many of each."""
    refuse_pairs(data.name, data.pairs, data.reading)
    training, validation = SPLIT.held_back(data.pairs, lambda pair: pair[0])
    if min(len(training), len(validation)) < least:
        said = f"{len(data.pairs)} pairs, {len(validation)} to evaluate on"
        rule = f"one in twenty is held back, at least {least} must be: give {40 * least} pairs or more"
        raise DataError(f"{data.name}: {said} ({rule})")
    return training, validation
