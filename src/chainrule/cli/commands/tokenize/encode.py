"""`chainrule tokenize encode`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from chainrule.cli.args.options import Argument
from chainrule.cli.args.text import byte_count, find_tokenizer, read_input
from chainrule.cli.render.progress import Progress


@dataclass(frozen=True)
class Command:
    """Print the token ids of a text.

    Example: chainrule tokenize encode book.txt --vocab bpe.json --json
    """

    file: Annotated[str, Argument("FILE")] = "pydoc"
    """A text file, a corpus that `chainrule data list` knows, or - for standard input."""
    vocab: Path | None = None
    """A tokenizer: our JSON, a run, or a file of another program, see docs/guide/tokenizers.md. Default: characters."""
    pattern: str | None = None
    """How words are split in tiktoken's files, which do not say it: a name such as o200k, or a regular expression."""
    json: bool = False
    """Print one JSON object with the ids and their number."""

    def run(self) -> None:
        with Progress("encoding"):
            tokenizer = find_tokenizer(self.vocab, pattern=self.pattern)
            text = read_input(self.file)
            ids = tokenizer.encode(text).tolist()
        if self.json:
            counts = {"tokens": len(ids), "characters": len(text), "bytes": byte_count(text)}
            print(json.dumps({"ids": ids, **counts, "vocab_size": tokenizer.vocab_size}))
        else:
            print(" ".join(map(str, ids)))
