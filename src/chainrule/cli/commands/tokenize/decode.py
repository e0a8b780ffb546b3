"""`chainrule tokenize decode`"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from chainrule.cli.args.options import Argument
from chainrule.cli.args.text import find_tokenizer, read_input
from chainrule.cli.render.progress import Progress
from chainrule.errors import DataError

RULE = 'must be a list of integers, or {"ids": [...]}'
TOO_LONG = "decode: an id has more than 64 bits (must be a token of the vocabulary)"


@dataclass(frozen=True)
class Command:
    """Print the text of token ids, as `chainrule tokenize encode` prints them, with --json or without.

    Example: chainrule tokenize encode - --vocab bpe.json | chainrule tokenize decode - --vocab bpe.json
    """

    file: Annotated[str | None, Argument("FILE")] = None
    """A file with ids, or - for standard input. Default: the first ids of the default vocabulary."""
    vocab: Path | None = None
    """The tokenizer that made the ids. Default: the characters of pydoc."""
    pattern: str | None = None
    """How words are split in tiktoken's files, which do not say it: a name such as o200k, or a regular expression."""
    json: bool = False
    """Print one JSON object with the text."""

    def run(self) -> None:
        with Progress("decoding"):
            tokenizer = find_tokenizer(self.vocab, pattern=self.pattern)
            first = np.arange(min(100, tokenizer.vocab_size))
            ids = first if self.file is None else parse_ids(read_input(self.file))
            text = tokenizer.decode(ids)
        print(
            json.dumps({"text": text, "tokens": len(ids)}) if self.json else text,
            end="\n" if self.json else "",
        )


def parse_ids(text: str) -> np.ndarray[Any, Any]:
    """Ids from numbers with anything between them but letters, or from JSON: a list, or an object with "ids"."""
    if text.lstrip().startswith(("{", "[")):
        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(f"decode: line {error.lineno} is not JSON ({error.msg})") from error
        except ValueError as error:  # Python reads no integer of thousands of digits
            raise DataError(TOO_LONG) from error
        except RecursionError as error:
            raise DataError(f"decode: the JSON is nested too deeply ({RULE})") from error
        ids = found.get("ids") if isinstance(found, dict) else found
        if not isinstance(ids, list) or not all(type(id) is int for id in ids):
            raise DataError(f"decode: the JSON holds no ids ({RULE})")
    else:
        words = text.replace(",", " ").split()
        if strange := next((word for word in words if not re.fullmatch(r"-?\d{1,18}", word)), None):
            raise DataError(f"decode: {strange[:40]!r} is not an id (must be integers)")
        ids = [int(word) for word in words]
    try:
        return np.array(ids, np.int64)
    except OverflowError as error:
        raise DataError(TOO_LONG) from error
