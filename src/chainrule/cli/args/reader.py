"""From the words of a command line to the dataclass of a command: a flag counts more than a file, a file more than the
default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

from chainrule.cli.args.config_file import CONFIG, from_file
from chainrule.cli.args.errors import BadValue, ExtraArgument, MissingArgument, MissingValue, UnknownOption
from chainrule.cli.args.kinds import Kind
from chainrule.cli.args.options import Given, Option, default_of

T = TypeVar("T")
NOWHERE: Mapping[str, str] = {}


def read(command: type[T], options: Sequence[Option], words: Sequence[str]) -> T:
    """An instance of the dataclass `command`, whose options are `options`; what does not fit is a UsageError."""
    values = from_words(options, words, getattr(command, "elsewhere", {}))
    if path := values.get(CONFIG):
        values = from_file(path, options, getattr(command, "family", "")) | values
    for option in options:
        if option.default is MISSING and option.name not in values:
            raise MissingArgument(option.flag, option.help)
    return _made(command, values)


def from_words(
    options: Sequence[Option], words: Sequence[str], elsewhere: Mapping[str, str] = NOWHERE
) -> dict[str, Any]:
    """The values of the options that the words name; `elsewhere` says where other flags belong."""
    texts, places = _sorted(options, list(words), elsewhere)
    values = {}
    for option in options:
        if option.argument and places:
            many = option.kind.repeated
            texts[option.name] = places if many else places[:1]
            places = [] if many else places[1:]
        if option.name in texts:
            said = texts[option.name]
            if option.argument and "" in said:
                raise BadValue(option.flag, "", "must not be empty")
            values[option.name] = said if isinstance(said, bool) else option.kind.value(option.flag, said)
    if places:
        raise ExtraArgument(places[0])
    return values


def _sorted(
    options: Sequence[Option], words: list[str], elsewhere: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """What follows each flag, and the words that follow none."""
    flags = {option.flag: option for option in options if not option.argument}
    flags |= {f"--{option.also}": option for option in options if option.also}
    off = {f"--no-{flag[2:]}": option for flag, option in flags.items() if option.kind.words == 0}
    texts: dict[str, Any] = {}
    places: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            return texts, [*places, *words]
        if not _is_flag(word):
            places.append(word)
            continue
        written, equals, value = word.partition("=")
        flag = written.replace("_", "-")
        option = flags.get(flag) or off.get(flag)
        if option is None:
            known = [option.flag for option in options] + (list(off) if flag.startswith("--no") else [])
            raise UnknownOption(word, known, elsewhere.get(flag, ""))
        if option.kind.words == 0:
            if equals:
                raise BadValue(flag, value, f"must stand alone: leave out ={value}")
            texts[option.name] = flag in flags
        else:
            before = texts.get(option.name, []) if option.kind.repeated else []
            texts[option.name] = [*before, *([value] if equals else _following(option.kind, flag, words))]
    return texts, places


def _following(kind: Kind, flag: str, words: list[str]) -> list[str]:
    """The words that are the values of a flag, taken from the words that are left."""
    found = list(takewhile(lambda word: not _is_flag(word), words[:1] if kind.words == 1 else words))
    pairs = kind.words is None and kind.gather is not tuple
    if pairs:
        numbers = 1 + len(list(takewhile(_is_number, found[1:])))
        found = found[: numbers + numbers % 2]  # half a pair takes the next word along: the error shows it
    if not found and (pairs or kind.words is not None):
        raise MissingValue(flag)
    del words[: len(found)]
    return found


def _is_flag(word: str) -> bool:
    """A dash and a name without spaces: `--prompt "- an item"` has a value."""
    name = word.partition("=")[0]
    return name.startswith("-") and name != "-" and not _is_number(word) and len(name.split()) == 1


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _made(command: type[T], values: dict[str, Any]) -> T:
    """The command with these values; inner dataclasses are their defaults with what was given."""
    own = {field.name: field for field in fields(command)}  # type: ignore[arg-type]
    said = {name: value for name, value in values.items() if name in own}
    for name, field in own.items():
        default = default_of(field)
        if isinstance(default, Given):
            said[name] = Given(values)
        elif is_dataclass(default) and not isinstance(default, type):
            said[name] = _changed(default, {n: value for n, value in values.items() if n not in own})
    return command(**said)


def _changed(default: Any, values: dict[str, Any]) -> Any:
    """A dataclass with what was given for its fields, and for those of the dataclasses in it."""
    inner = {name: _changed(value, values) for name, value in vars(default).items() if is_dataclass(value)}
    changes = {name: value for name, value in (values | inner).items() if name in vars(default)}
    return replace(default, **changes) if changes else default
