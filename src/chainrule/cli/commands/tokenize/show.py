"""`chainrule tokenize show`"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.text import find_tokenizer, read_input
from chainrule.cli.args.unused import refuse
from chainrule.errors import ConfigError, Setting
from chainrule.validate import Check

COLORS = (
    "black on bright_cyan",
    "black on bright_yellow",
    "black on bright_green",
    "black on bright_magenta",
)
SEED = "low lower lowest"  # the worked example


@dataclass(frozen=True)
class Command(Reporting):
    """Show a text in its tokens, or how byte pair encoding learns them.

    Example: chainrule tokenize show book.txt --vocab bpe.json
    """

    file: Annotated[str | None, Argument("FILE")] = None
    """A text file, a corpus, or - for standard input. Default: pydoc; with --trace the words low, lower, lowest."""
    vocab: Path | None = None
    """A tokenizer. Default: the characters of pydoc."""
    pattern: str | None = None
    """How words are split in tiktoken's files, which do not say it: a name such as o200k, or a regular expression."""
    length: int = 600
    """Characters to show."""
    kind: Literal["plain-bpe"] | None = None
    """With --trace: the tokenizer whose training is shown; there is only this one."""
    trace: bool = False
    """Show the merges that training makes, one a line: the pair, its count, and the words after it."""
    merges: int = 20
    """With --trace: how many merges to show."""
    words: int = 10
    """With --trace: how many words to show after each merge, the most frequent ones; with --json all are there."""

    def run(self) -> None:
        if self.kind is not None and not self.trace:
            rule = "must be with --trace, which shows how it learns; a text is shown by --vocab FILE"
            raise ConfigError("tokenize show: ", Setting("kind"), f" is {self.kind} without trace ({rule})")
        own = ("merges", "words") if self.trace else ("vocab", "pattern", "length")
        why = f"{'with' if self.trace else 'without'} trace (leave it out)"
        refuse("tokenize show", self, why, but=("file", "kind", "trace", "json", *own))
        Check("tokenize show", self).at_least(1, "length", "merges", "words")
        if self.trace:
            self._merges()
        else:
            self._pieces()

    def _merges(self) -> None:
        text = SEED.split() if self.file is None else read_input(self.file)
        steps = list(islice(cr.text.textbook_bpe.trace(text), self.merges))
        table = partial(cr.text.textbook_bpe.trace_table, steps, self.words)
        self.report({"merges": [asdict(step) for step in steps]}, table)

    def _pieces(self) -> None:
        from rich.console import Console
        from rich.text import Text

        tokenizer = find_tokenizer(self.vocab, pattern=self.pattern)
        text = read_input(self.file or cr.data.corpora.DEFAULT)[: self.length]
        ids = tokenizer.encode(text).tolist()
        pieces = [tokenizer.piece(id) for id in ids]
        if self.json:
            print(json.dumps({"pieces": pieces, "ids": ids, "tokens": len(ids)}))
            return
        console = Console(highlight=False, soft_wrap=True)
        shown = Text()
        for place, piece in enumerate(pieces):
            visible = piece.replace("\n", "⏎\n") if console.is_terminal else f"[{piece}]"
            shown.append(visible, COLORS[place % len(COLORS)])
        if console.is_terminal:
            console.print(shown)
        else:
            print(shown.plain)  # which ends as other commands do if nobody reads it
        each = len(text) / max(len(ids), 1)
        print(f"{len(ids):,} tokens for {len(text):,} characters, {each:.2f} each")
