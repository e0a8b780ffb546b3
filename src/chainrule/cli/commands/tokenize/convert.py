"""`chainrule tokenize convert`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import NewFile
from chainrule.cli.render.progress import Progress


@dataclass(frozen=True)
class Command(Reporting):
    """Write a tokenizer of any format as Hugging Face's tokenizer.json, which holds its pattern too.

    Every `--tokenizer` and `--vocab` takes the new file, as do other programs.

    Example: chainrule tokenize convert company.tiktoken --pattern o200k --out tokenizer.json
    """

    vocab: Annotated[Path, Argument("FILE")]
    """A tokenizer's file, or a directory with one, see docs/guide/tokenizers.md."""
    pattern: str | None = None
    """How words are split in tiktoken's files, which do not say it: a name such as o200k, or a regular expression."""
    out: Annotated[Path, NewFile] = Path("tokenizer.json")
    """The new file."""

    def run(self) -> None:
        with Progress(f"write {self.out}"):
            tokenizer = cr.io.load_tokenizer(self.vocab, pattern=self.pattern)
            cr.io.save_tokenizer(tokenizer, self.out, hugging_face=True)
        result = {"kind": tokenizer.kind, "vocab_size": tokenizer.vocab_size, "out": str(self.out)}
        self.report(result, lambda: f"{self.out}: {tokenizer.kind}, {tokenizer.vocab_size:,} tokens")
