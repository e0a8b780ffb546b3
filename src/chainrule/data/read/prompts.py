"""Prompts: what a policy is asked, without an answer.

.txt                                   a prompt per line
.jsonl .json .csv .tsv .parquet        prompt, instruction with input, or messages; answers beside them are not read
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.files import lines
from chainrule.data.read.preferences import Prompt, messages_of, prompt_of
from chainrule.data.read.tabular.columns import no_table
from chainrule.data.read.tabular.records import Record, kind, records, unit
from chainrule.errors import DataError


@dataclass(frozen=True)
class PromptCorpus:
    """Prompts, each once, with the name under which `load_prompts` finds them, their version and hash."""

    name: str
    version: str
    prompts: tuple[Prompt, ...] = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Of all prompts in order."""
        return hashlib.sha256(json.dumps(self.prompts).encode()).hexdigest()


def load_prompts(name: str | os.PathLike[str], columns: Columns = CHOSEN) -> PromptCorpus:
    """The prompts of a file, each once; a record without one is a DataError that names its line."""
    no_table(name, columns)
    path = Path(name)
    if kind(path) == ".txt":
        found: list[Prompt] = [line for _, line in lines(path) if line.strip()]
    else:
        found = [_asked(record, f"{path}: {unit(path)} {number}") for number, record in records(path)]
    once = {as_text(prompt): prompt for prompt in found}
    if not once:
        raise DataError(f"{path}: no prompts (must have at least one)")
    return PromptCorpus(str(path.absolute()), "file", tuple(once.values()))


def as_text(prompt: Prompt) -> str:
    """The prompt as one text, by which prompts are compared and split."""
    return prompt if isinstance(prompt, str) else json.dumps(prompt)


def _asked(record: Record, where: str) -> Prompt:
    """The prompt of a record; of a conversation all up to the last answer."""
    for name in ("messages", "chosen"):
        if isinstance(record.get(name), list) and (name == "messages" or "prompt" not in record):
            messages = messages_of(record[name], f"{where}: {name!r}")
            asked = messages[:-1] if messages[-1]["role"] == "assistant" else messages
            if not asked:
                raise DataError(f"{where}: {name!r} holds an answer alone (must have a question before it)")
            return tuple(asked)
    return prompt_of(record, where)
