"""`chainrule data instruct`"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import chainrule as cr
from chainrule.cli.args.kinds import Several
from chainrule.cli.args.options import Argument, Reporting, Without
from chainrule.cli.args.outputs import NewFile
from chainrule.cli.commands.data.mix import write_conversations
from chainrule.cli.render.tables import show
from chainrule.columns import Columns
from chainrule.errors import ConfigError, Setting


@dataclass(frozen=True)
class Command(Reporting):
    """Turn labeled texts, translations or other pairs into instructions, a conversation for each.

    Example: chainrule data instruct reviews.tsv --template sentiment --labels 1=positive 0=negative --out chats.jsonl
    """

    file: Annotated[str, Argument("FILE")]
    """Labeled texts, if the template has {labels}; else pairs of a text and its answer."""
    out: Annotated[Path, NewFile]
    """The new .jsonl file, an object with "messages" per line."""
    template: str = "classify"
    """sentiment, classify, translate, summarize, or a text with {text} in it, and with {labels} or {language}."""
    labels: Annotated[tuple[str, ...], Several] = ()
    """The labels in the order in which the question names them, each with a word for it if it has one: 1=positive.
    Default: those of FILE, sorted."""
    language: str = ""
    """What {language} stands for, such as French."""
    columns: Annotated[Columns, Without(("other_column",))] = field(default_factory=Columns)

    def run(self) -> None:
        from chainrule.data.read.chat.templates import TEMPLATES

        template = TEMPLATES.get(self.template, self.template)
        read = self._labeled if "{labels}" in template else self._paired
        talks, reading = read(template)
        kept = write_conversations(self.out, talks)
        if reading is not None and not self.json:
            print(reading)
        show({"conversations": kept, "copies": len(talks) - kept, "out": str(self.out)}, self.json)

    def _labeled(self, template: str) -> tuple[list[Any], Any]:
        from chainrule.data.read.chat.templates import of_labels

        if self.language:
            said = " is given for a template without {language} (leave it out)"
            raise ConfigError("data instruct: ", Setting("language"), said)
        corpus = cr.data.load_labels(self.file, self.columns)
        rows = [(row.text, row.labels[0]) for row in corpus.texts]
        asked = [word.partition("=") for word in self.labels] or [
            (n, "", n) for n in sorted({b for _, b in rows})
        ]
        names = {label: name or label for label, _, name in asked}
        return of_labels(rows, template, list(names), names), corpus.reading

    def _paired(self, template: str) -> tuple[list[Any], Any]:
        from chainrule.data.read.chat.templates import of_pairs

        if self.labels:
            said = " are given for a template without {labels} (leave them out)"
            raise ConfigError("data instruct: ", Setting("labels"), said)
        corpus = cr.data.load_pairs(self.file, self.columns)
        return of_pairs(corpus.pairs, template, self.language), corpus.reading
