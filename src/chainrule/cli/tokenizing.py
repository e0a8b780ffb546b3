"""What the commands `chainrule tokenize ...` share: text in, a tokenizer by name, a sign of life."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from chainrule.data import load
from chainrule.data.corpora import BUILT_IN, DEFAULT
from chainrule.errors import DataError
from chainrule.io import load_tokenizer
from chainrule.text import CharTokenizer, Tokenizer


def read_input(source: str) -> str:
    """The text of a file as it is, of a corpus by its name, or of standard input for '-'."""
    path = Path(source)
    if source == "-":
        content = sys.stdin.buffer.read()
    elif source in BUILT_IN or not path.is_file():
        return load(source).text
    else:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = "standard input" if source == "-" else source
        raise DataError(f"{what}: line {line} is not UTF-8, byte 0x{content[error.start]:02x}") from error


def find_tokenizer(vocab: Path | None) -> Tokenizer:
    """The tokenizer in a file; without one, the characters of the built-in text."""
    return CharTokenizer.train(load(DEFAULT).text) if vocab is None else load_tokenizer(vocab)


def waiting(what: str) -> Progress:
    """A line on stderr that shows that work goes on, as a context manager."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    console = Console(stderr=True)
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    progress.add_task(what, total=None)
    return progress
