"""Which columns of a table are read: the one rule, for every command and every format.

1. What is asked for by name or by number counts.
2. A column with a usual name is taken: text and label, source and target, and others of the lists below.
3. In a table with no more columns than are needed they are told apart by their place, and a label by having few values.
4. Anything else is asked for: to guess would be to train on the wrong column.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn

from chainrule.columns import Columns, flag
from chainrule.data.read.tabular.records import some
from chainrule.errors import DataError, Setting

if TYPE_CHECKING:
    from chainrule.data.read.tabular.table import Table

Roles = tuple[str, ...]
TEXTS: Roles = ("text",)
LABELED: Roles = ("text", "label")
PAIRED: Roles = ("source", "target")
ROLES: Roles = (*LABELED, *PAIRED, "other")
Places = dict[str, tuple[int, ...]]
CELL = 20  # characters of a cell that an error shows

# Names of one meaning. The first of `FIRST` that is there is taken; of the others, one that is there alone.
FIRST = {"text": ("text", "sentence"), "label": ("label",)}
USUAL = {
    "text": {
        "texts", "sentences", "content", "document", "body", "message", "review", "comment", "tweet", "headline",
        "utterance", "passage",
    },
    "label": {
        "labels", "class", "category", "sentiment", "topic", "intent", "genre", "emotion", "target", "label_text",
    },
}  # fmt: skip
PAIRS = (
    ("source", "target"), ("src", "tgt"), ("instruction", "output"), ("input", "output"),
    ("prompt", "completion"), ("question", "answer"),
)  # fmt: skip
# Codes of languages that are also words, such as "it" and "es", are not in the list.
LANGUAGES = {
    "english", "german", "french", "spanish", "italian", "dutch", "russian", "chinese", "japanese", "portuguese",
    "polish", "czech", "swedish", "finnish", "turkish", "arabic", "hindi", "ukrainian", "latin",
    "en", "de", "fr", "nl", "ru", "zh", "ja", "pt", "pl", "cs", "sv", "fi",
    "eng", "deu", "ger", "fra", "fre", "spa", "ita", "nld", "rus", "zho", "jpn", "por",
}  # fmt: skip


def no_table(name: str | os.PathLike[str], columns: Columns) -> None:
    """Refuse columns that are said of something else than a table, where they would be ignored."""
    for each in fields(columns):
        if getattr(columns, each.name) not in (None, ()):
            raise DataError(f"{name}: no table, but ", Setting(each.name), " is given (leave it out)")


def choose(table: Table, roles: Roles, columns: Columns) -> Places:
    """The places of the columns of each role."""
    found = {role: _resolved(table, columns.asked(role)) for role in roles if columns.asked(role)}
    taken = {place for places in found.values() for place in places}
    if len(taken) < sum(map(len, found.values())):
        asked = " and ".join(f"{'+'.join(columns.asked(role))!r} as {role}" for role in found)
        raise DataError(f"{table.path}: {asked} (must be different columns)")
    missing = [role for role in roles if role not in found]
    if missing and table.header is not False:
        found |= _by_name(table, missing, taken)
    missing = [role for role in roles if role not in found]
    if missing:
        found |= _by_place(table, missing, found)
    return {role: found[role] for role in roles}


def _resolved(table: Table, asked: Sequence[str]) -> tuple[int, ...]:
    parts = [part for said in asked for part in parted(said, table.names) if part.strip()] or asked
    return tuple(dict.fromkeys(place_of(table, part.strip()) for part in parts))


def parted(said: str, names: Sequence[str]) -> list[str]:
    """The columns in one option, with commas between them; a comma may be part of a name

    >>> from chainrule.data.read.tabular.columns import parted
    >>> parted("title,text, long", ["id", "title", "Text, long"])
    ['title', 'text, long']
    """
    known, parts, found = set(map(plain, names)), said.split(","), []
    while parts:
        joined = (n for n in range(len(parts), 1, -1) if plain(",".join(parts[:n])) in known)
        n = next(joined, 1)
        found.append(",".join(parts[:n]))
        del parts[:n]
    return found


def place_of(table: Table, said: str) -> int:
    """The place of a column, from 0, by its name in upper or lower case, or else by its number from 1."""
    for names, wanted in ((table.names, said), (tuple(map(plain, table.names)), plain(said))):
        if names.count(wanted) > 1:
            raise DataError(f"{table.path}: {names.count(wanted)} columns {said!r} (give the number of one)")
        if wanted in names and table.header is not False:
            return names.index(wanted)
    if said.isdecimal() and 1 <= int(said) <= len(table.names):
        return int(said) - 1
    rule = f"a number from 1 to {len(table.names)}"
    if table.header is not False:
        raise DataError(f"{table.path}: no column {said!r} (there are {some(table.names)}; or {rule})")
    raise DataError(f"{table.path}: no column {said!r} (must be {rule}", *_if_header(table), ")")


def _if_header(table: Table) -> tuple[str, ...]:
    """What to say if the first row, which was read as data, names the columns."""
    first = _shown(table.sample[0]) if table.sample else ""
    return (f"; if the first row, {first}, names the columns, say ", Setting("header"))


def _by_name(table: Table, missing: Sequence[str], taken: set[int]) -> Places:
    """Columns with usual names."""
    names = list(map(plain, table.names))
    free = {n: place for place, n in enumerate(names) if place not in taken and names.count(n) == 1}
    if tuple(missing) == PAIRED:
        for pair in PAIRS:
            if all(name in free for name in pair):
                return {role: (free[name],) for role, name in zip(PAIRED, pair, strict=True)}
        spoken = [place for name, place in free.items() if name in LANGUAGES]
        return {role: (spoken[i],) for i, role in enumerate(PAIRED)} if len(spoken) == 2 else {}
    found: Places = {}
    for role in missing:
        first, usual = FIRST.get(role, (role,)), USUAL.get(role, set())
        known = [free[name] for name in first if name in free][:1]
        known = known or [place for name, place in free.items() if name in usual]
        if len(known) == 1:
            found[role] = (known[0],)
            free = {name: place for name, place in free.items() if place != known[0]}
    return found


def _by_place(table: Table, missing: Sequence[str], found: Places) -> Places:
    """Columns of a table that has none to spare: the label is the one with few values."""
    taken = {place for places in found.values() for place in places}
    free = [place for place in range(len(table.names)) if place not in taken and not table.blank(place)]
    if len(free) < len(missing):
        needed = " and ".join(f"a {role}" for role in (*found, *missing))
        n = len(table.names)
        raise DataError(f"{table.path}: {n} column{'s' * (n != 1)}, {some(table.names)} (must have {needed})")
    if len(free) != len(missing) or any(table.counts_rows(place) for place in free):
        _ask(table, missing, found)
    if tuple(missing) == LABELED:
        a, b = (table.distinct(place) for place in free)
        if a < b:
            free.reverse()
        elif a == b and table.header is not False and len(table.sample) > 2:
            _ask(table, missing, found)
    return {role: (place,) for role, place in zip(missing, free, strict=True)}


def _ask(table: Table, missing: Sequence[str], found: Places) -> NoReturn:
    """An error that names the columns, the flags, and what the first rows suggest."""
    unnamed = table.header is False
    named = f"{len(table.names)} columns without names" if unnamed else f"columns {some(table.names)}"
    flags: list[str] = []
    for role in missing:
        flags += [" and " if flags else "", Setting(flag(role))]
    such: list[str] = []
    for role, column in table.suggest(missing, found).items():
        such += [" " if such else ", such as ", Setting(flag(role)), f" {shlex.quote(column)}"]
    raw = (
        "; to read the file as it stands, give it the ending .txt"
        if tuple(missing) == TEXTS and not found
        else ""
    )
    which = f"{table.path}: {named}: which is the {' and which the '.join(missing)}? (say it with "
    raise DataError(which, *flags, *such, *(_if_header(table) if unnamed else ()), raw, ")")


def _shown(row: Sequence[Any]) -> str:
    """A row for an error, each cell by its beginning."""
    return some(str(cell)[:CELL] for cell in row)


def plain(name: str) -> str:
    """A name without case and white space around it."""
    return name.strip().casefold()
