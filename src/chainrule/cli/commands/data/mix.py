"""`chainrule data mix`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import NewFile
from chainrule.cli.render.tables import show
from chainrule.errors import ConfigError
from chainrule.files import new_file
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Mix conversations of several files in given proportions, none of them twice.

    Example: chainrule data mix written.jsonl=1 reformatted.jsonl=10 sampled.jsonl=5 --out chats.jsonl
    """

    files: Annotated[tuple[str, ...], Argument("FILE=WEIGHT")]
    """Files of conversations, each with its weight; 1 if it is left out."""
    out: Annotated[Path, NewFile]
    """The new .jsonl file, an object with "messages" per line."""
    count: int | None = None
    """Conversations in all. Default: as many as the files allow."""
    seed: int = 0
    """Seed of the choice, where a file has more than are wanted."""

    def run(self) -> None:
        from chainrule.data.read.chat.mixed import mixed

        Check("data mix", self).seed()
        weights = dict(map(weighted, self.files))
        if len(weights) < len(self.files):
            raise ConfigError("data mix: a file is named twice (must be named once)")
        sources = {name: cr.data.load_conversations(name).conversations for name in weights}
        found = mixed(sources, weights, self.count, self.seed)
        kept = write_conversations(self.out, [talk for talks in found.values() for talk in talks])
        counts = {name: len(talks) for name, talks in found.items()}
        show({**counts, "conversations": kept, "out": str(self.out)}, self.json)


def weighted(said: str) -> tuple[str, float]:
    """chats.jsonl=10 -> the file and its weight"""
    name, equals, weight = said.rpartition("=")
    if not equals or Path(said).exists():
        return said, 1.0
    try:
        return name, float(weight)
    except ValueError:
        raise ConfigError(
            f"data mix: {said!r} (must be a file and its weight, such as chats.jsonl=10)"
        ) from None


def write_conversations(path: Path, talks: Sequence[cr.data.Conversation]) -> int:
    """A .jsonl file of conversations without copies; returns their number."""
    if path.suffix != ".jsonl":
        raise ConfigError(f"{path}: cannot be the output (its name must end in .jsonl)")
    once = dict.fromkeys(talks)
    with new_file(path) as file:
        for talk in once:
            file.write((json.dumps({"messages": talk.messages}, ensure_ascii=False) + "\n").encode())
    return len(once)
