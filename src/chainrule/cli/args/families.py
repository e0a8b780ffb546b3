"""The families of models that can be trained by command: their data in words, and which of their sizes have a flag."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple, get_type_hints

from chainrule.cli.args.kinds import kind_of
from chainrule.columns import Columns
from chainrule.models.registry import ENCODERS, KNOWN

NAMES = list(KNOWN)  # in the order they are named to people
DECIDED = ("vocab_size", "source_vocab_size", "classes", "labels")  # sizes that follow from the data


class Data(NamedTuple):
    """What a family is trained on."""

    about: str
    example: str
    default: str = "docstrings"
    columns: tuple[str, ...] = ("text_column", "label_column")
    """The flags that choose the columns of a table."""
    chosen: str = ""
    """What is chosen by the number of texts, if anything is."""


TEXT = Data(
    "A text file, a table with a column of texts, a corpus that `chainrule data list` knows, or a directory that "
    "`chainrule data build` made.",
    example="book.txt",
    default="pydoc",
    columns=("text_column",),
)
LABELED = Data(
    "Texts with labels: a .csv, .tsv or .jsonl with text and label, a .txt with a label before each line, "
    "or docstrings.",
    example="reviews.csv --text-column review --label-column stars",
    chosen="What is not given follows the number of texts, and the run says what it chose: a few passes over all of "
    "them, and of few texts a small model. With --init the sizes are those of the model.",
)
PAIRS = Data(
    "Pairs of texts: a .tsv, .csv or .jsonl with source and target, a .dict of pronunciations, two files A+B line "
    "by line, or docstrings.",
    example="phrases.csv --source-column german --target-column english",
    default="docstrings",
    columns=("source_column", "target_column"),
)
DATA = {
    "seq2seq": PAIRS,
    "t5": PAIRS,
    "bert-embedder": PAIRS,
    "bert-classifier": LABELED,
    "bow-classifier": LABELED,
    "bert-tagger": Data(
        "Sentences with a tag for each word: a line per word with a tab and its tag, an empty line after each "
        "sentence; or docstrings.",
        example="names.conll",
    ),
}  # any other family: TEXT


def without(kind: Data) -> tuple[str, ...]:
    """The fields of `Columns` that mean nothing for these data."""
    return tuple(field.name for field in fields(Columns) if field.name not in (*kind.columns, "header"))


def decided(family: str) -> tuple[str, ...]:
    """Fields of a config without a flag. The variant of an encoder says only whose names its weights have."""
    return (*DECIDED, "variant") if family in ENCODERS else DECIDED


def sizes_of(family: str) -> list[str]:
    """The fields of a family's config that have a flag: numbers, words and switches that the data do not decide."""
    config = KNOWN[family].config
    hints = get_type_hints(config, include_extras=True)
    names = [field.name for field in fields(config) if field.name not in decided(family)]
    return [name for name in names if kind_of(hints[name])]
