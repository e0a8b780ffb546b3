"""Conversations to learn from, found by name like a corpus.

.jsonl .json              records in the layouts of `layouts`; a .json is a list of them
.csv .tsv .parquet        the same fields as columns, or two columns of questions and answers by `columns`
docstrings                built in: functions of the standard library, and what they do
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from chainrule.columns import CHOSEN, Columns
from chainrule.data import corpora
from chainrule.data.hashing import digest
from chainrule.data.read.chat.layouts import ASKING, PAIRS, Conversation, conversations_in
from chainrule.data.read.parallel import load_pairs
from chainrule.data.read.tabular.columns import PAIRED, choose, no_table, plain
from chainrule.data.read.tabular.reading import COPIES, Reading, cells
from chainrule.data.read.tabular.records import kind, records, unit
from chainrule.data.read.tabular.table import KINDS, Table
from chainrule.data.splits import Split
from chainrule.errors import DataError

SPLIT = Split(validation=0.05, test=0.0)
ASKED = "What does this Python function do?"  # of the built-in pairs
FORMATS = (".json", *KINDS)


@dataclass(frozen=True)
class ConversationCorpus:
    """Conversations with the name under which `load_conversations` finds them, their version and hash."""

    name: str
    version: str
    conversations: tuple[Conversation, ...] = field(repr=False)
    reading: Reading | None = field(default=None, repr=False, compare=False)
    """How columns of a table were read."""
    copies: int = field(default=0, compare=False)
    """Conversations that were left out, since they occur before."""
    places: Mapping[Conversation, str] = field(default_factory=dict, repr=False, compare=False)
    """Where in the file each is."""

    @cached_property
    def sha256(self) -> str:
        """Of all messages in order."""
        hashed = hashlib.sha256()
        for turn in (turn for conversation in self.conversations for turn in conversation.turns):
            hashed.update(f"{turn.role}\0{turn.content}\0".encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()

    def parts(self) -> tuple[list[Conversation], list[Conversation]]:
        """Conversations to train on, and one in twenty to evaluate on, chosen by the hash of the first question."""
        held_out = {q for c in self.conversations if SPLIT.part(q := c.question) == "validation"}
        questions = {conversation.question for conversation in self.conversations}
        if len(questions) < 2:
            rule = "must be at least two: one to train on, one to evaluate on"
            raise DataError(f"{self.name}: {len(questions)} question ({rule})")
        if not held_out:
            held_out = {min(questions, key=digest)}
        elif held_out == questions:
            held_out.discard(min(questions, key=digest))
        training = [each for each in self.conversations if each.question not in held_out]
        return training, [each for each in self.conversations if each.question in held_out]


def load_conversations(
    name: str | os.PathLike[str] = "docstrings", columns: Columns = CHOSEN
) -> ConversationCorpus:
    """The conversations of a file, or the built-in docstrings, without copies.

    `columns` says which columns of a table are the question (source) and the answer (target).

    >>> from chainrule.data import load_conversations
    >>> load_conversations("docstrings").conversations[0].question.startswith("What does this Python function do?")
    True
    """
    if name == "docstrings":
        no_table(name, columns)
        pairs = load_pairs("docstrings")
        found = tuple(Conversation.of(f"{ASKED}\n\n{source}", target) for source, target in pairs.pairs)
        return ConversationCorpus(pairs.name, pairs.version, found)
    path = corpora.find(name)
    if not path.is_file() or kind(path) not in FORMATS:
        rule = f"must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, or docstrings"
        said = "not a file of conversations" if path.exists() else "no such file"
        raise DataError(f"{name}: {said} ({rule})")
    where = str(path.absolute())
    if kind(path) in KINDS and _by_columns(path, columns):
        found, reading = _paired(path, columns)
        return ConversationCorpus(where, "file", found, reading)
    no_table(name, columns)
    counted = unit(path)
    told, places = 0, dict[Conversation, str]()
    for number, record in records(path):
        for each in conversations_in(record, f"{path}: {counted} {number}"):
            told += 1
            places.setdefault(each, f"{counted} {number}")
    if not told:
        raise DataError(f"{path}: no conversations (must have at least two)")
    return ConversationCorpus(where, "file", tuple(places), copies=told - len(places), places=places)


def _by_columns(path: Path, columns: Columns) -> bool:
    """The question and the answer are two columns of a table: they are said, or no field has a usual name."""
    if columns != CHOSEN:
        return True
    names = set(map(plain, Table.open(path, columns).names))
    return not names & {*ASKING, *(answers for _, answers in PAIRS)}


def _paired(path: Path, columns: Columns) -> tuple[tuple[Conversation, ...], Reading]:
    """Two columns of a table; an empty cell is an error."""
    table = Table.open(path, columns)
    places = choose(table, PAIRED, columns)
    rows = 0
    found: list[Conversation] = []
    for number, (source, target) in cells(table, places):
        rows += 1
        if source is None or target is None:
            role = "target" if source else "source"
            column = table.place_in_words(places[role][0])
            rule = "must be a text: fill it, or take the row away"
            raise DataError(f"{path}: {unit(path)} {number} has nothing in {column}, its {role} ({rule})")
        found.append(Conversation.of(source.strip(), target.strip()))
    once = tuple(dict.fromkeys(found))
    dropped = {COPIES: rows - len(once)} if len(once) < rows else {}
    return once, Reading.begun(table, places).counted(rows, dropped)
