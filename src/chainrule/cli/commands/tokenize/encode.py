"""`chainrule tokenize encode`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from chainrule.cli.args.options import Argument
from chainrule.cli.args.text import find_tokenizer, read_input
from chainrule.cli.render.progress import Progress
from chainrule.data.corpora import DEFAULT


@dataclass(frozen=True)
class Command:
    """Print the token ids of a text.

    Example: chainrule tokenize encode book.txt --vocab bpe.json --json
    """

    file: Annotated[str, Argument("FILE")] = DEFAULT
    """A text file, a corpus that `chainrule data list` knows, or - for standard input."""
    vocab: Path | None = None
    """A tokenizer: our JSON, a run, or a file of another program, see docs/guide/tokenizers.md. Default: characters."""
    json: bool = False
    """Print one JSON object with the ids and their number."""

    def run(self) -> None:
        with Progress("encoding"):
            tokenizer = find_tokenizer(self.vocab)
            text = read_input(self.file)
            ids = tokenizer.encode(text).tolist()
        if self.json:
            size = len(text.encode("utf-8", "surrogatepass"))
            counts = {
                "tokens": len(ids),
                "characters": len(text),
                "bytes": size,
                "vocab_size": tokenizer.vocab_size,
            }
            print(json.dumps({"ids": ids, **counts}))
        else:
            print(" ".join(map(str, ids)))
