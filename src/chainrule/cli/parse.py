"""Command lines to dataclasses, by tyro, with its boxed explanations folded into one line."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import tyro

from chainrule.errors import ConfigError

T = TypeVar("T")


def parse(command: type[T], program: str, args: list[str]) -> T:
    """An instance of the dataclass `command` from flags; what does not fit is a ConfigError."""
    if {"-h", "--help"} & set(args):
        return tyro.cli(command, prog=program, args=args)  # prints the help and exits
    explanation = io.StringIO()
    try:
        with contextlib.redirect_stderr(explanation), _wide_terminal():
            return tyro.cli(command, prog=program, args=args)
    except SystemExit:
        raise ConfigError(f"{fold(explanation.getvalue())} (see {program} --help)") from None


def flags(words: Sequence[str]) -> frozenset[str]:
    """The fields whose flags are among the words of a command line: {"n_layer", "bias"} of --n-layer=2 --no-bias."""
    given = [word.partition("=")[0][2:].replace("-", "_") for word in words if word.startswith("--")]
    return frozenset(given) | {name.removeprefix("no_") for name in given}


def fold(box: str) -> str:
    """The text of a box in one line, up to the pointer to --help and without the help text of arguments."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)  # colours
    rows = [row.strip("│ ") for row in plain.splitlines()[1:]]  # the first is the title
    sections = [" ".join(s.split()) for s in re.split(r"^[─╰╯-]+$", "\n".join(rows), flags=re.MULTILINE)]
    said = [s.rstrip(".") for s in sections if s and not re.match(r"For full helptext|Argument helptext", s)]
    message = re.sub(r" Got errors: .*", "", ". ".join(said))
    message = re.sub(
        r"^Error parsing (--\S+: )?(?:[^-]\S*: )?", r"\1", message
    )  # names a flag, never a field
    message = re.sub(
        r"invalid literal for int\(\) with base 10: (.*)", r"got \1 (must be an integer)", message
    )
    message = re.sub(r"could not convert string to float: (.*)", r"got \1 (must be a number)", message)
    return message[:1].lower() + message[1:]


@contextlib.contextmanager
def _wide_terminal() -> Iterator[None]:
    """Room for any message on one row: a wrapped path could not be put together again."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
