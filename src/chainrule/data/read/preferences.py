"""Preferences: a prompt and two answers to it, of which one was chosen.

.jsonl .json .csv .tsv .parquet, with these fields (others are not read):

prompt chosen rejected                 texts, or lists of messages {"role", "content"}
instruction input chosen rejected      the prompt is the instruction, and the input below it if there is one
chosen rejected                        two conversations that differ in their last message alone
cut                                    beside one of these: which answers did not end by themselves (chosen, rejected or
                                       both), but were broken off; without it, none
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.chat.layouts import role_in
from chainrule.data.read.tabular.columns import no_table
from chainrule.data.read.tabular.records import Record, records, some, unit
from chainrule.errors import DataError

Prompt = str | tuple[Mapping[str, str], ...]
"""A text, or the messages of a conversation."""
PROMPTS = ("prompt", "instruction")
SIDES = ("chosen", "rejected")
CUT = {"": (), "chosen": ("chosen",), "rejected": ("rejected",), "both": SIDES}
TIES = "must differ; leave such pairs out with skip_ties, on the command line --skip-ties"


class Comparison(NamedTuple):
    """A prompt and two answers to it, of which the first was preferred."""

    prompt: Prompt
    chosen: str
    rejected: str
    line: int = 0
    """In the file."""
    cut: tuple[str, ...] = ()
    """The answers that were broken off: no token ends them."""

    @property
    def tied(self) -> bool:
        """Both answers are the same: there is nothing to prefer."""
        return self.chosen == self.rejected and len(self.cut) != 1

    @property
    def asked(self) -> str:
        """The prompt as one text, by which examples are split: answers to one prompt stay together."""
        return self.prompt if isinstance(self.prompt, str) else json.dumps(self.prompt)


@dataclass(frozen=True)
class PreferenceCorpus:
    """Comparisons with the name under which `load_preferences` finds them, their version and hash."""

    name: str
    version: str
    comparisons: tuple[Comparison, ...] = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Of all texts in order."""
        texts = [[c.prompt, c.chosen, c.rejected, *c.cut] for c in self.comparisons]
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()

    def without_ties(self, *, skip: bool = False) -> list[Comparison]:
        """The comparisons; one whose answers are the same is refused, or left out with `skip`."""
        tied = [c for c in self.comparisons if c.tied]
        if tied and not skip:
            few = ", ".join(str(c.line) for c in tied[:5]) + ", …" * (len(tied) > 5)
            raise DataError(f"{self.name}: line {few}: chosen and rejected are the same ({TIES})")
        return [c for c in self.comparisons if not c.tied]


def load_preferences(name: str | os.PathLike[str], columns: Columns = CHOSEN) -> PreferenceCorpus:
    """The comparisons of a file; a missing or empty field is a DataError that names its line."""
    no_table(name, columns)
    path = Path(name)
    found = tuple(
        _comparison(record, number, f"{path}: {unit(path)} {number}") for number, record in records(path)
    )
    if not found:
        raise DataError(f"{path}: no preferences (must have a prompt, a chosen and a rejected answer each)")
    return PreferenceCorpus(str(path.absolute()), "file", found)


def _comparison(record: Record, number: int, where: str) -> Comparison:
    for name in SIDES:
        if record.get(name) in (None, "", []):
            said = "is empty" if name in record else "is missing"
            raise DataError(f"{where}: {name!r} {said} (must be an answer; there are {some(record)})")
    chosen, rejected = (_parted(record[name], f"{where}: {name!r}") for name in SIDES)
    if chosen[0] != rejected[0]:
        rule = "must be the same but for the last message"
        raise DataError(f"{where}: chosen and rejected answer different conversations ({rule})")
    prompt = chosen[0] or prompt_of(record, where)
    cut = record.get("cut") or ""
    if not isinstance(cut, str) or cut not in CUT:
        raise DataError(f"{where}: 'cut' is {cut!r} (must be chosen, rejected or both, or be left out)")
    return Comparison(prompt, chosen[1], rejected[1], number, CUT[cut])


def _parted(answer: Any, where: str) -> tuple[tuple[Mapping[str, str], ...], str]:
    """The messages before an answer, if it is a conversation, and the answer."""
    if isinstance(answer, str):
        return (), answer
    *before, last = messages_of(answer, where)
    if last["role"] != "assistant" or not last["content"]:
        raise DataError(f"{where} ends with {str(dict(last))[:60]} (must be an answer of the assistant)")
    return tuple(before), last["content"]


def prompt_of(record: Record, where: str) -> Prompt:
    """The prompt of a record, from the fields that it has."""
    name = next((name for name in PROMPTS if record.get(name)), "")
    if not name:
        there = next((name for name in PROMPTS if name in record), "")
        said = f"{there!r} is empty" if there else f"no field {' or '.join(map(repr, PROMPTS))}"
        raise DataError(f"{where}: {said} (must be a prompt; there are {some(record)})")
    value = record[name]
    if isinstance(value, list):
        return tuple(messages_of(value, f"{where}: {name!r}"))
    given = record.get("input") if name == "instruction" else ""
    if not isinstance(value, str) or not isinstance(given or "", str):
        raise DataError(
            f"{where}: {name!r} is a {type(value).__name__} (must be a text, or a list of messages)"
        )
    return f"{value}\n\n{given}" if given else value


def messages_of(value: Any, where: str) -> list[Mapping[str, str]]:
    """A list of messages, each with a role and a content."""
    if not isinstance(value, list) or not value:
        raise DataError(f"{where} is a {type(value).__name__} (must be a text, or a list of messages)")
    found: list[Mapping[str, str]] = []
    for number, message in enumerate(value):
        place = f"{where}, message {number}"
        role, name = role_in(message, place)
        if not isinstance(message.get(name), str):
            raise DataError(f"{place} has no {name!r} (must be a text)")
        found.append({"role": role, "content": message[name]})
    return found
