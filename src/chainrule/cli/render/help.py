"""The help of a command: usage, what it does, and a line or more for each option."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, replace
from itertools import groupby
from typing import Any

from chainrule.cli.args.options import Option
from chainrule.cli.render import wrap

COLUMN = 26  # where the help of an option begins


def help_text(command: type[Any], program: str, options: Sequence[Option]) -> str:
    """All of it, as wide as the terminal."""
    width = wrap.width()
    by_data = command.by_data() if hasattr(command, "by_data") else {}
    options = [_with_default(option, by_data) for option in options]
    arguments = [option for option in options if option.argument]
    first = [command.first] if hasattr(command, "first") else []
    usage = " ".join(["usage:", program, *first, *map(_place, arguments), "[OPTIONS]"])
    about = inspect.cleandoc(command.__doc__ or "")
    lines = [*wrap.paragraph(usage, width), "", *_wrapped(about, width)]
    if arguments:
        lines += ["", "arguments", *(line for option in arguments for line in _entry(option, width))]
    flags = [option for option in options if not option.argument]
    for owner, group in groupby(flags, key=lambda option: option.owner):
        own = issubclass(command, owner)
        title = "options" if own else inspect.cleandoc(owner.__doc__ or "").split("\n")[0].rstrip(".")
        lines += [
            "",
            *wrap.paragraph(title, width),
            *(line for option in group for line in _entry(option, width)),
        ]
    return "\n".join(lines)


def _place(option: Option) -> str:
    more = f"{option.argument} ..." if option.kind.repeated else option.argument
    return more if option.default is MISSING else f"[{more}]"


def _wrapped(about: str, width: int) -> Iterator[str]:
    """Paragraphs; an example stays on one line, so that it can be copied."""
    for number, paragraph in enumerate(about.split("\n\n")):
        if number:
            yield ""
        one = " ".join(paragraph.split())
        yield from [one] if one.startswith("Example:") else wrap.paragraph(one, width)


def _with_default(option: Option, by_data: Mapping[str, Any]) -> Option:
    """The option with the default that counts for its command."""
    if option.name not in by_data:
        return option
    value = by_data[option.name]
    return replace(option, default="by the number of texts" if value is None else value)


def _entry(option: Option, width: int) -> Iterator[str]:
    return wrap.entry(f"  {_name(option)}", f"{option.help}{_default(option)}", COLUMN, width)


def _name(option: Option) -> str:
    if option.argument:
        return option.argument
    if option.kind.words == 0:
        return f"{option.flag}, --no-{option.flag[2:]}" if option.default else option.flag
    more = " ..." if option.kind.repeated else ""
    return f"{option.flag} {option.kind.shown}{more}"


def _default(option: Option) -> str:
    """What counts without the option, unless its help says so or it is nothing."""
    value = option.default
    if value is MISSING:
        return " (required)"
    if value is None or value is False or value in ("", " ") or value == () or value == {}:
        return ""
    if value is True:
        return " (default: on)"
    return f" (default: {' '.join(map(str, value)) if isinstance(value, tuple) else value})"
