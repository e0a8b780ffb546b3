"""`chainrule data build`"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.documents import Sources
from chainrule.cli.args.options import Reporting
from chainrule.cli.args.outputs import New
from chainrule.cli.args.text import find_tokenizer
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import show
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Turn documents into token shards, which `chainrule train FAMILY DIR` maps into memory.

    Example: chainrule data build texts/*.jsonl --text-column body --validation 0.05 --out shards/texts
    """

    sources: Sources = field(default_factory=Sources)
    tokenizer: str = "char"
    """File of a tokenizer; char: every character of the documents is a token; or bpe, bpe:4000, unigram, wordpiece:
    learned from the documents."""
    out: Annotated[Path | None, New] = None
    """The new directory. Default: shards/data, or the next of shards/data-2, shards/data-3, ... that is free."""
    end: str | None = None
    """Text of the token that follows each document, empty for none. Default: a line end."""
    validation: float = 0.0
    """Fraction of documents held out for validation, which training needs; their text alone decides which."""
    test: float = 0.0
    """Fraction of documents held out for the final test."""
    seed: int = 0
    """Another seed holds out other documents."""
    workers: int = 1
    """Processes that encode documents at the same time, to the same files. Under mpiexec the ranks are these."""

    def run(self) -> None:
        Check("build", self).at_least(1, "workers")
        split = cr.data.Split(self.validation, self.test, self.seed)
        end = "\n" if self.end is None else self.end
        out = self.out or cr.runs.folder.free_folder(Path("shards/data"))
        with Progress("characters") as progress:
            texts = (document.text for document in progress.documents(self.sources.read(quiet=True)))
            tokenizer = find_tokenizer(self.tokenizer, chain([end], texts), workers=self.workers)
        with Progress("tokens") as progress:
            documents = progress.documents(self.sources.read())
            meta = cr.data.build(
                out, documents, tokenizer, split=split, end=end or None, workers=self.workers
            )
        counts = {
            name: {k: v for k, v in part.items() if k != "files"} for name, part in meta["parts"].items()
        }
        show({"out": str(out), "vocab_size": meta["vocab_size"], **counts}, self.json)
