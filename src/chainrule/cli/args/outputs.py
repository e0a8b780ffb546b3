"""Paths that a command writes: what is in their way is said before any work, not after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.files import check_folder, check_new, check_new_file, check_replaced

if TYPE_CHECKING:
    from chainrule.cli.args.options import Option


@dataclass(frozen=True)
class Output:
    """Marks a field that holds a path to write; `check` refuses one that cannot be."""

    check: Callable[[Path], None]


New = Output(check_new)  # a directory that may exist if it is empty, or a file where the format is one
NewFile = Output(check_new_file)  # what is learned or gathered: one that exists is not replaced
Folder = Output(check_folder)  # for files


def replaced(*endings: str) -> Output:
    """What is quickly made again: a file that exists is replaced if its name ends so, and otherwise kept."""
    return Output(lambda path: check_replaced(path, endings))


def check_outputs(options: Sequence[Option], command: Any) -> None:
    """Refuse what the options of a command could not be written to."""
    for option in options:
        path = getattr(command, option.name, None) if option.output else None
        if option.output and path is not None:
            option.output.check(path)
