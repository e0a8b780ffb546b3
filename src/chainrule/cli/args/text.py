"""What commands on texts share: text in, and a tokenizer by name."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import chainrule as cr
from chainrule.errors import ConfigError, DataError, Setting

PIECE = 1 << 20  # characters


def read_input(source: str) -> str:
    """The text of a file as it is but for a byte order mark, of a corpus by its name, or of standard input for '-'."""
    from chainrule.data.read.files import reading

    path = Path(source)
    if source == "-":
        content = sys.stdin.buffer.read()
    elif len(source.split()) > 1 and not path.exists():
        rule = "a text itself comes from standard input: echo TEXT | chainrule COMMAND -"
        raise DataError(f"{source!r}: no such file ({rule})")
    elif source in cr.data.BUILT_IN or not path.is_file():
        return cr.data.load(source).text
    else:
        with reading(path) as file:  # unpacks .gz
            content = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = "standard input" if source == "-" else source
        raise DataError(
            f"{what}: line {line} is not UTF-8, byte 0x{content[error.start]:02x} (must be text in UTF-8)"
        ) from error


def find_tokenizer(
    vocab: str | Path | None,
    texts: Iterable[str] | None = None,
    *,
    pattern: str | None = None,
    workers: int = 1,
) -> cr.text.Tokenizer:
    """The tokenizer in a file, or learned from the texts by its name; for none, or `char`, their characters.

    Without texts the characters are those of the built-in one.

    `pattern` splits words for a file of tiktoken's ranks.
    """
    from chainrule.text.training.recipe import Recipe

    recipe = Recipe.of(str(vocab)) if texts is not None else None
    if texts is not None and recipe and recipe.kind != "char":
        return recipe.learn(list(texts), workers=workers)
    if vocab is not None and vocab != "char":
        return cr.io.load_tokenizer(vocab, pattern=pattern)
    if pattern is not None:
        raise ConfigError(
            "tokenize: ", Setting("pattern"), " without a file of tiktoken's ranks (give its name too)"
        )
    characters: set[str] = set()
    for text in [cr.data.load(cr.data.corpora.DEFAULT).text] if texts is None else texts:
        for start in range(0, len(text), PIECE):  # a thread that tells the progress gets its turn in between
            characters.update(text[start : start + PIECE])
    return cr.text.CharTokenizer("".join(sorted(characters)))


def byte_count(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))
