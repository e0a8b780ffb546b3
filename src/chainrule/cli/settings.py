"""Options from a TOML file: `--config FILE`. Tables group them as one likes; their names are not read.

    n_layer = 6
    [training]
    lr = 1e-3

The file becomes flags in front of those on the command line, so the same rules and messages hold, and the later counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chainrule.cli.wording import flag_of, near
from chainrule.errors import ConfigError


def from_file(words: Sequence[str], family: str) -> dict[str, Any]:
    """The options in the file that a command line names with --config, if it names one."""
    path = _named(words)
    if path is None:
        return {}
    found = read_settings(path)
    named = found.pop("family", family)
    if named != family:
        raise ConfigError(f"{path}: family is {named!r} (must be {family}: say train {named})")
    return found


def read_settings(path: Path) -> dict[str, Any]:
    """The options in a file, by the names of their fields."""
    return dict(_options(_read(path)))


def as_flags(settings: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """Settings as words of a command line; `known` are the fields that have a flag."""
    words: list[str] = []
    for name, value in settings.items():
        if name not in known:
            hint = near(name, known)
            raise ConfigError(f"config: {name!r} is no option{f' ({hint})' if hint else ''}")
        words += _flag(name, value)
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


def _named(words: Sequence[str]) -> Path | None:
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


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag_of(name if value else f"no_{name}")]
    if isinstance(value, int | float | str):
        return [f"{flag_of(name)}={value}"]
    raise ConfigError(f"config: {name} is a {type(value).__name__} (must be a number, a text, true or false)")
