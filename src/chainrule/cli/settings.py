"""Options from a TOML file: `--config FILE`. Tables group them as one likes; their names are not read.

    n_layer = 6
    [training]
    lr = 1e-3

The file becomes flags in front of those on the command line, so the same rules and messages hold, and the later counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from chainrule.cli.wording import flag_of, near
from chainrule.errors import ConfigError

# What TOML must give for an option of a type; for all others, a text.
TYPES: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false, without quotes"),
    int: (int, "an integer, without quotes"),
    float: (int | float, "a number, without quotes"),
}


def from_file(path: Path | None, family: str) -> dict[str, Any]:
    """The options in the file for a family, if there is one."""
    if path is None:
        return {}
    found = read_settings(path)
    _check_type(path, "data", found.get("data", ""), str)
    named = found.pop("family", family)
    if named != family:
        raise ConfigError(f"{path}: family is {named!r} (must be {family}: say train {named})")
    return found


def read_settings(path: Path) -> dict[str, Any]:
    """The options in a file, by the names of their fields."""
    return dict(_options(_read(path)))


def as_flags(path: Path | None, settings: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """The settings of a file as words of a command line; `known` are the fields that have a flag, and their types."""
    words: list[str] = []
    for name, value in settings.items():
        if name not in known:
            hint = near(name, known)
            raise ConfigError(f"{path}: {name!r} is no option{f' ({hint})' if hint else ''}")
        if name != "budget" or not isinstance(value, str):  # which may be "10m"
            _check_type(path, name, value, known[name])
        if isinstance(value, bool):
            words.append(flag_of(name if value else f"no_{name}"))
        else:
            words.append(f"{flag_of(name)}={value}")
    return words


def toml(settings: Mapping[str, Any]) -> str:
    """Settings as a file for `--config`; what is None is left out."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in settings.items() if value is not None)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _check_type(path: Path | None, name: str, value: Any, kind: Any) -> None:
    """TOML has types: "6" is not 6, and "no" is not false."""
    wanted = next(each for each in (*get_args(kind), kind) if each is not type(None))
    allowed, rule = TYPES.get(wanted, (str, "a text in quotes"))
    # To Python true is an integer as well.
    if not isinstance(value, allowed) or isinstance(value, bool) != (wanted is bool):
        said = _value(value) if isinstance(value, bool | int | float | str) else value
        raise ConfigError(f"{path}: {name} is {said} (must be {rule})")


def named_file(words: Sequence[str]) -> Path | None:
    """The file that a command line names with --config, if it names one."""
    for place, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag == "--config":
            if not equals and place + 1 == len(words):
                return None  # the parser will say so
            return Path(value if equals else words[place + 1])
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is no TOML ({error})") from error


def _options(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _options(value)
        else:
            yield name.replace("-", "_"), value
